/**
 * @file
 * The time.
 */
#ifndef EXAMPLE_CLOCK_H
#define EXAMPLE_CLOCK_H

#include <time.h>

/** Seconds since some moment in the past. */
static inline double example_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
