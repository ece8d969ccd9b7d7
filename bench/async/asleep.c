#include "bench/async/asleep.h"

#include <stdatomic.h>
#include <time.h>

#include "bench/base/world.h"
#include "lib/progress/request.h"

#define SHARE_ASLEEP 0.95  /* of what is usual, before the first look, at most */
#define LATER        1.02  /* times the last one */
#define NAPS         50    /* that would fill the time that has passed */
#define SHORTEST_NAP 20e-6 /* SECONDS; shorter ones take as long */
#define LONGEST_NAP  1e-3

static void nap(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Carries nothing out: a request stays as it is when it is done, until its owner ends it. */
static int is_done(const fsdp_request *request)
{
    return atomic_load_explicit(&request->state, memory_order_acquire) == FSDPI_REQUEST_DONE;
}

/* So short that what has passed is known well. */
static double between_looks(double passed)
{
    const double length = passed / NAPS;

    return length < SHORTEST_NAP ? SHORTEST_NAP : length > LONGEST_NAP ? LONGEST_NAP : length;
}

/* The next first look comes later, up to most of what is usual; much earlier if this one has come too late. */
static void set_first_look(bench_asleep *asleep, int too_late)
{
    const double most = SHARE_ASLEEP * asleep->usual, next = too_late ? asleep->first / 2 : asleep->first * LATER;

    asleep->first = next <= 0 || next > most ? most : next;
}

/* Asleep until it is done: what is known of when that was. */
static void sleep_until_done(bench_asleep *asleep, const fsdp_request *request, double begin, double *seconds)
{
    double under_way = begin, look = bench_now();

    if (asleep->first > 0 && !is_done(request)) {
        nap(asleep->first);
        look = bench_now();
    }
    while (!is_done(request)) {
        under_way = look;
        nap(between_looks(look - begin));
        look = bench_now();
    }
    const int too_late = under_way <= begin; /* no look found it under way: it took no longer than that, or less */

    *seconds           = (too_late ? look : (under_way + look) / 2) - begin;
    asleep->resolution = too_late ? look - begin : (look - under_way) / 2;
    asleep->usual      = asleep->usual <= 0 || *seconds < asleep->usual ? *seconds : asleep->usual;
    set_first_look(asleep, too_late);
}

fsdp_status bench_asleep_run(bench_asleep *asleep, const bench_case *c, fsdp_context *ctx, void *in, void *out,
                             double *seconds)
{
    const double  begin = bench_now();
    fsdp_request *requests[BENCH_ASLEEP_AT_ONCE];
    fsdp_status   status;

    for (size_t i = 0; i < BENCH_ASLEEP_AT_ONCE; i++) { /* of the same data into the same place, one after the other */
        BENCH_TRY(bench_issue(c, ctx, in, out, &requests[i]));
    }
    sleep_until_done(asleep, requests[BENCH_ASLEEP_AT_ONCE - 1], begin, seconds);
    *seconds /= BENCH_ASLEEP_AT_ONCE;
    asleep->resolution /= BENCH_ASLEEP_AT_ONCE;
    status = fsdp_wait_all(BENCH_ASLEEP_AT_ONCE, requests);
    nap(asleep->usual / BENCH_ASLEEP_AT_ONCE);
    return status;
}
