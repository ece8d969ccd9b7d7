/**
 * @file
 * A pipeline schedule: for each rank of the pipeline, what it does, in order. Two kinds: of compute alone, as people write them, and
 * lowered (lower.h), with messages, gathering and reducing.
 */
#ifndef FSDPI_SCHEDULE_H
#define FSDPI_SCHEDULE_H

#include "shard/pipeline/action.h"

typedef struct fsdpi_actions {
    fsdpi_action *list;
    size_t        n, room;
} fsdpi_actions;

typedef struct fsdpi_schedule {
    int            ranks, stages, micros; /* the last two follow from the actions */
    fsdpi_actions *rows;                  /* one for each rank */
} fsdpi_schedule;

/** What is wrong with a schedule, and where. */
typedef struct fsdpi_flaw {
    int    rank; /* -1: at no place */
    size_t at;   /* of its actions */
    char   text[400];
} fsdpi_flaw;

/** Stages times micro-batches, at most: what a check keeps is proportional to it. */
enum { FSDPI_MOST_PASSES = 1 << 22 };

/** An empty schedule of so many ranks. These two return false if memory is short. */
bool fsdpi_schedule_open(fsdpi_schedule *schedule, int ranks);
bool fsdpi_schedule_add(fsdpi_schedule *schedule, int rank, fsdpi_action action);
void fsdpi_schedule_close(fsdpi_schedule *schedule);

/** Whether it has more than compute. */
bool fsdpi_schedule_is_lowered(const fsdpi_schedule *schedule);

/** Sets what is wrong; returns false. */
bool fsdpi_flaw_set(fsdpi_flaw *flaw, int rank, size_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
