/**
 * @file
 * Stamps for a record: cheap, and comparable between the processes of a host.
 */
#ifndef FSDPI_TICKS_H
#define FSDPI_TICKS_H

#include <stdint.h>
#include <time.h>

#include "lib/record/layout.h"

static inline uint64_t fsdpi_clock_nanoseconds(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/** The time by a clock of fsdpi_ticks_clock(). */
static inline uint64_t fsdpi_ticks(uint32_t clock)
{
#if defined(__x86_64__)
    if (clock == FSDPI_CLOCK_TSC) {
        return __builtin_ia32_rdtsc();
    }
#endif
    (void)clock;
    return fsdpi_clock_nanoseconds(CLOCK_MONOTONIC);
}

/** The cheapest clock of this host: the time-stamp counter, where the processor keeps it steady and Linux trusts it. */
uint32_t fsdpi_ticks_clock(void);

/** This moment. Safe in a signal handler. */
fsdpi_recorded_moment fsdpi_ticks_moment(uint32_t clock);

#endif
