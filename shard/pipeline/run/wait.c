#include "shard/pipeline/run/wait.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/side_work.h"
#include "lib/record/dump.h"

/* As for operations: a process that was stopped has not waited all that time. */
static const double MOST_SECONDS_BETWEEN_LOOKS = 1.0, NAP = 50e-6;

enum { PEER_BYTES = 24 }; /* of "rank 2147483647" */

fsdpi_vigil fsdpi_vigil_begin(const fsdpi_action *action, int peer)
{
    const double now = fsdpi_seconds();

    return (fsdpi_vigil){.action = action, .peer = peer, .begun = now, .looked = now};
}

/* What is waited for, in words. */
static const char *awaited(const fsdpi_vigil *vigil, char *text, size_t bytes)
{
    if (vigil->peer < 0) {
        return "its GPU";
    }
    (void)snprintf(text, bytes, "rank %d", vigil->peer);
    return text;
}

static fsdp_status give_up(fsdp_pipeline *pipeline, const fsdpi_vigil *vigil)
{
    fsdp_context *ctx = pipeline->ctx;
    char          action[FSDPI_ACTION_BYTES], whom[PEER_BYTES];

    ctx->broken = FSDP_ERR_TIMEOUT;
    (void)fsdpi_fail(ctx, FSDP_ERR_TIMEOUT,
                     "%s: rank %d has waited %d s for %s, at %s of step %" PRIu64
                     "; FSDP_TIMEOUT_S must be above the time between two messages",
                     pipeline->name, ctx->shown_rank, ctx->config.timeout_s, awaited(vigil, whom, sizeof whom),
                     fsdpi_action_print(vigil->action, action), pipeline->step);
    fsdpi_dump_give_up(fsdpi_error_recorded(ctx));
    return FSDP_ERR_TIMEOUT;
}

static void warn(const fsdp_pipeline *pipeline, fsdpi_vigil *vigil)
{
    const double after = vigil->warned > 0 ? 2 * vigil->warned : pipeline->ctx->config.stall_s;
    char         action[FSDPI_ACTION_BYTES], whom[PEER_BYTES];

    if (pipeline->ctx->config.stall_s > 0 && vigil->waited > after) {
        vigil->warned = after;
        fsdpi_log(pipeline->ctx, FSDP_LOG_WARN, "%s: has waited %.0f s for %s, at %s of step %" PRIu64, pipeline->name,
                  vigil->waited, awaited(vigil, whom, sizeof whom), fsdpi_action_print(vigil->action, action),
                  pipeline->step);
    }
}

fsdp_status fsdpi_vigil_pause(fsdp_pipeline *pipeline, fsdpi_vigil *vigil)
{
    fsdp_context *ctx = pipeline->ctx;
    const double  now = fsdpi_seconds(), since = now - vigil->looked;

    vigil->looked = now;
    vigil->waited += since < MOST_SECONDS_BETWEEN_LOOKS ? since : MOST_SECONDS_BETWEEN_LOOKS;
    if (ctx->broken != FSDP_OK) {
        return fsdpi_fail(ctx, ctx->broken, "%s: the context has failed before; finalize it", pipeline->name);
    }
    if (ctx->config.timeout_s > 0 && vigil->waited > ctx->config.timeout_s) {
        return give_up(pipeline, vigil);
    }
    warn(pipeline, vigil);
    if (fsdpi_side_work_advance(NULL) == FSDPI_MOVED) {
        vigil->looks = 0;
    } else if (!fsdpi_back_off(vigil->looks++, vigil->waited, FSDPI_YIELDING_SECONDS)) {
        fsdpi_nap(NAP);
    }
    return FSDP_OK;
}

void fsdpi_vigil_end(fsdp_pipeline *pipeline, const fsdpi_vigil *vigil)
{
    pipeline->waited += fsdpi_seconds() - vigil->begun;
}
