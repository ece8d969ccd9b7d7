/**
 * @file
 * Monotonic time, and how to wait: briefly at full speed, then giving the core away, then asleep, so that more ranks than
 * cores still get on.
 */
#ifndef FSDPI_CLOCK_H
#define FSDPI_CLOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline double fsdpi_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** The same to some milliseconds, for a fraction of the cost. */
static inline double fsdpi_coarse_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Of a core, used by the calling thread. */
static inline uint64_t fsdpi_thread_nanoseconds(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/** How long to give way before sleeping, where what is waited for wakes the sleeper or is not urgent. */
#define FSDPI_YIELDING_SECONDS 200e-6

enum { FSDPI_POLLS_AT_FULL_SPEED = 16 };

/** Call between two polls; `polls` counts them, `waited` is the time since the first. False: it is time to sleep. */
static inline bool fsdpi_back_off(unsigned polls, double waited, double yielding_seconds)
{
    if (polls < FSDPI_POLLS_AT_FULL_SPEED) {
        return true;
    }
    if (waited < yielding_seconds) {
        (void)sched_yield();
        return true;
    }
    return false;
}

static inline void fsdpi_nap(double seconds)
{
    const struct timespec nap = {.tv_sec  = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    (void)nanosleep(&nap, NULL);
}

#endif
