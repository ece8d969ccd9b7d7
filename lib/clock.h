/**
 * @file
 * Monotonic time, and how to wait: briefly at full speed, then giving the core away, then asleep, so that more ranks than
 * cores still get on.
 */
#ifndef FSDPI_CLOCK_H
#define FSDPI_CLOCK_H

#include <sched.h>
#include <time.h>

static inline double fsdpi_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Call between two polls; `polls` counts them, `waited` is the time since the first. */
static inline void fsdpi_back_off(unsigned polls, double waited)
{
    enum { POLLS_AT_FULL_SPEED = 64 };
    static const double YIELDING_SECONDS = 1e-3;

    if (polls < POLLS_AT_FULL_SPEED) {
        return;
    }
    if (waited < YIELDING_SECONDS) {
        (void)sched_yield();
        return;
    }
    const struct timespec nap = {.tv_sec = 0, .tv_nsec = waited < 20 * YIELDING_SECONDS ? 50000 : 200000};
    (void)nanosleep(&nap, NULL);
}

#endif
