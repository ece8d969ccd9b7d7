/**
 * @file
 * Carries out a lowered schedule with data, by other rules of thumb than shard/pipeline: ranks take turns by chance, what is there is
 * looked up in what each rank has, and nothing is known before it is tried.
 */
#ifndef FSDP_TESTS_EXECUTOR_H
#define FSDP_TESTS_EXECUTOR_H

#include <stdint.h>

#include "shard/pipeline/schedule.h"

typedef enum executed {
    EXECUTED, /* all passes of all micro-batches, with what they need */
    STUCK,    /* some ranks wait for ever */
    MISSED,   /* something is not there where it is used, or is there at the end and should not be, or is done twice */
    HELD_TOO_MUCH /* more micro-batches than the limit */
} executed;

executed execute(const fsdpi_schedule *schedule, int buffers, int most_held, uint64_t seed);

#endif
