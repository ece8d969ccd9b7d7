#include "bench/base/compute.h"

#include <time.h>

#define CALIBRATION_SECONDS 0.05 /* barriers and the scheduler's slices are little beside it */

static volatile double sink;

/* Nothing but arithmetic, so that it shares the core with communication and nothing else. */
static void turn(uint64_t turns)
{
    double x = 1.0;

    for (uint64_t i = 0; i < turns; i++) {
        x = x * 0.999 + 0.5;
    }
    sink = x;
}

/* With all ranks at it: where they share cores, each is slower. */
static double seconds_per_turn(const bench_world *world)
{
    uint64_t turns   = 1024;
    double   seconds = 0;

    while (seconds < CALIBRATION_SECONDS) {
        double begin;

        turns *= 2;
        MPI_Barrier(world->comm);
        begin = bench_now();
        turn(turns);
        MPI_Barrier(world->comm);
        seconds = bench_max(world, bench_now() - begin);
    }
    return seconds / (double)turns;
}

bench_work bench_work_make(const bench_world *world, int kind, double seconds)
{
    bench_work work = {.kind = kind, .seconds = seconds};

    if (kind == BENCH_COMPUTE_CPU) {
        work.turns = (uint64_t)(seconds / seconds_per_turn(world)) + 1;
    }
    return work;
}

void bench_work_do(const bench_work *work)
{
    struct timespec t = {(time_t)work->seconds, (long)((work->seconds - (double)(time_t)work->seconds) * 1e9)};

    if (work->kind == BENCH_COMPUTE_CPU) {
        turn(work->turns);
    } else {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    }
}
