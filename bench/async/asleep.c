#include "bench/async/asleep.h"

#include <stdatomic.h>
#include <time.h>

#include "bench/base/world.h"
#include "lib/context/context.h"
#include "lib/progress/request.h"

#define ENOUGH       1.5   /* times what is usual */
#define KEPT         0.9   /* of what was usual, where the last ones took less */
#define SHORTEST_NAP 50e-6 /* SECONDS */

static void nap(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

int bench_asleep_can(const fsdp_context *ctx)
{
    return ctx->recorder.section != NULL;
}

/* Carries nothing out: a request stays as it is when it is done, until its owner ends it. */
static int is_done(const fsdp_request *request)
{
    return atomic_load_explicit(&request->state, memory_order_acquire) == FSDPI_REQUEST_DONE;
}

/* Few looks, also where nothing is known yet. */
static void sleep_until_done(const bench_asleep *asleep, const fsdp_request *request)
{
    double length = ENOUGH * asleep->usual, slept = 0;

    do {
        length = length < SHORTEST_NAP ? SHORTEST_NAP : length;
        nap(length);
        slept += length;
        length = slept / 2;
    } while (!is_done(request));
}

/* SECONDS from `begin` to a stamp before `now`, by the clock that all of them are told by. */
static double seconds_between(const fsdpi_recorded_moment *begin, uint64_t stamp, const fsdpi_recorded_moment *now)
{
    const double share = (double)(stamp - begin->ticks) / (double)(now->ticks - begin->ticks);

    return share * (double)(now->monotonic - begin->monotonic) / 1e9;
}

fsdp_status bench_asleep_run(bench_asleep *asleep, const bench_case *c, fsdp_context *ctx, void *in, void *out,
                             double *seconds)
{
    const uint32_t              clock = ctx->recorder.clock;
    const fsdpi_recorded_moment begin = fsdpi_ticks_moment(clock);
    fsdp_request               *requests[BENCH_ASLEEP_AT_ONCE], *last;

    for (size_t i = 0; i < BENCH_ASLEEP_AT_ONCE; i++) { /* of the same data into the same place, one after the other */
        BENCH_TRY(bench_issue(c, ctx, in, out, &requests[i]));
    }
    last = requests[BENCH_ASLEEP_AT_ONCE - 1];
    sleep_until_done(asleep, last);

    const fsdpi_recorded_moment now   = fsdpi_ticks_moment(clock);
    const uint64_t              ended = fsdpi_recorder_ended(&ctx->recorder, last->sequence);
    const double                took  = seconds_between(&begin, ended != 0 ? ended : now.ticks, &now);

    asleep->usual = took > KEPT * asleep->usual ? took : KEPT * asleep->usual;
    *seconds      = took / BENCH_ASLEEP_AT_ONCE;
    return fsdp_wait_all(BENCH_ASLEEP_AT_ONCE, requests);
}
