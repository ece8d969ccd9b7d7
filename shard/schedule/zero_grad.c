/*
 * How all ranks come together again, behind a step that has failed on some of them.
 *
 * Operations of a context are matched by their number. Where ranks have called different things, the operation with which
 * they began to differ fails on each of them, but by then some may have issued more behind it than others. So a rank that
 * sees a pass fail issues nothing more: its calls are refused here. fsdp_model_zero_grad() then issues one agreement after
 * the other in each context of the model until one is agreed. That is the first with a number beyond all that any rank had
 * issued before, so it is the same on all ranks; and by then each rank has been met in everything that it had issued.
 */
#include "shard/schedule/zero_grad.h"

#include "lib/base/clock.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/schedule/pass.h"
#include "shard/schedule/reduction.h"
#include "shard/schedule/replay.h"
#include "shard/state/plane.h"
#include "shard/state/strategy.h"

enum { MOST_CONTEXTS = 4 };

static const char zero_grad_name[] = "fsdp_model_zero_grad";

/* ---- coming together --------------------------------------------------------------------------------------------- */

typedef struct meeting {
    fsdp_context *ctx;
    const char   *why;     /* NULL: no error is known */
    fsdp_request *request; /* NULL: none under way */
    bool          over;
} meeting;

static size_t list_meetings(const fsdp_model *model, meeting *meetings)
{
    const char *why = model->error != FSDP_OK ? model->error_text : NULL;
    size_t      n   = 0;

    meetings[n++] = (meeting){.ctx = model->ctx, .why = why};
    if (model->shards != model->ctx) {
        meetings[n++] = (meeting){.ctx = model->shards, .why = why};
    }
    if (model->replicas != NULL) {
        meetings[n++] = (meeting){.ctx = model->replicas, .why = why};
    }
    if (fsdpi_has_plane(model)) {
        meetings[n++] = (meeting){.ctx = model->plane.ctx, .why = why};
    }
    return n;
}

/* One look, or with `wait` until the present agreement ends. What is not agreed is tried again; an error is the end. */
static fsdp_status advance(meeting *m, bool wait)
{
    static const char label[] = "to come together";
    const fsdpi_call  call    = {.name = zero_grad_name, .label = label, .note = m->why, .is_behind = true};
    int               done    = 1;
    fsdp_status       status;

    if (m->request == NULL) {
        FSDP_TRY(fsdpi_issue(m->ctx, &call, FSDP_OK, &m->request));
    }
    status = wait ? fsdp_wait(m->request) : fsdp_test(m->request, &done);
    if (!done) {
        return FSDP_OK;
    }
    m->request = NULL;
    m->over    = status == FSDP_OK;
    return m->ctx->broken != FSDP_OK ? status : FSDP_OK;
}

static size_t n_left(const meeting *meetings, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        left += !meetings[i].over;
    }
    return left;
}

static fsdp_status advance_all(meeting *meetings, size_t n, bool wait)
{
    for (size_t i = 0; i < n; i++) {
        if (!meetings[i].over) {
            FSDP_TRY(advance(&meetings[i], wait));
        }
    }
    return FSDP_OK;
}

/*
 * In all contexts at once: a rank that this one keeps waiting in one of them may be what another waits for. A wait alone
 * knows when the time is over.
 */
static fsdp_status hold(meeting *meetings, size_t n)
{
    const double begin  = fsdpi_seconds();
    fsdp_status  status = FSDP_OK;

    for (unsigned polls = 0; status == FSDP_OK && n_left(meetings, n) > 0; polls++) {
        const double waited = fsdpi_seconds() - begin;
        const int    limit  = meetings[0].ctx->config.timeout_s;

        status = advance_all(meetings, n, n_left(meetings, n) == 1 || (limit > 0 && waited > limit));
        if (n_left(meetings, n) > 1 && !fsdpi_back_off(polls, waited, FSDPI_YIELDING_SECONDS)) {
            fsdpi_nap(100e-6);
        }
    }
    for (size_t i = 0; i < n; i++) {
        (void)fsdp_wait(meetings[i].request);
    }
    return status;
}

static fsdp_status meet(fsdp_model *model)
{
    meeting      meetings[MOST_CONTEXTS];
    const size_t n = list_meetings(model, meetings);

    return hold(meetings, n);
}

/* ---- forgetting -------------------------------------------------------------------------------------------------- */

/* What this rank had issued; all of it has ended. */
static void collect_errors(fsdp_model *model)
{
    (void)fsdpi_step_fail(model, fsdpi_gradients_abandon(model));
    (void)fsdpi_step_fail(model, fsdpi_gather_settle(model));
}

/* FSDP_OK where no rank has seen an error and units came in one order; else the error of the first that has. */
static fsdp_status verdict_on_step(fsdp_model *model)
{
    if (model->error != FSDP_OK) {
        (void)fsdpi_record(model->ctx, model->error, "%s", model->error_text);
    }
    return fsdpi_plane_follow(
        model, zero_grad_name,
        fsdpi_agree(model->ctx, zero_grad_name, "units in another order", model->order, model->error, true));
}

/*
 * A rank that no call has told returns the error, once: as one that called this while the others did something else. The
 * errors that it has met here are no call's.
 */
static fsdp_status forget_step(fsdp_model *model)
{
    const bool told = model->error != FSDP_OK;

    FSDP_TRY(meet(model));
    collect_errors(model);
    const fsdp_status status = verdict_on_step(model);
    FSDP_TRY(model->ctx->broken);
    fsdpi_passes_abandon(model);
    if (status != FSDP_OK) {
        fsdpi_gather_forget(model);
    }
    fsdpi_gradients_forget(model);
    fsdpi_replay_forget(model);
    model->failed = false;
    model->error  = FSDP_OK; /* also where no step succeeds before the next call */
    return told ? FSDP_OK : status;
}

fsdp_status fsdp_model_zero_grad(fsdp_model *model)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", zero_grad_name);
    }
    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model is not committed; call fsdp_model_commit first",
                          zero_grad_name);
    }
    return forget_step(model);
}

void fsdpi_step_end(fsdp_model *model)
{
    if (model->failed || fsdpi_is_hybrid(model->options.strategy) || fsdpi_has_plane(model)) {
        (void)meet(model);
    }
    const bool known = model->failed;
    collect_errors(model);
    if (model->failed && !known) {
        (void)meet(model);
    }
}
