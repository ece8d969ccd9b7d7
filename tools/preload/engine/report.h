/**
 * @file
 * What was called and what became of it, on this rank: counted if a report or a comparison was asked for.
 */
#ifndef FSDPI_PRELOAD_REPORT_H
#define FSDPI_PRELOAD_REPORT_H

#include "tools/preload/engine/communicators.h"

/** One call. */
typedef struct fsdpi_event {
    fsdpi_collective collective;
    fsdpi_fate       fate;
    bool             by_library; /**< of two sides that are compared */
    uint64_t         bytes;
    double           seconds;
} fsdpi_event;

/** Starts the run's clock. */
void fsdpi_report_open(void);

/** Counts a call. From any thread. */
void fsdpi_report_note(const fsdpi_event *event);

/** Writes the table. Local, on rank 0. */
void fsdpi_report_write(const char *path, int ranks);

/** Seconds, from any beginning. */
double fsdpi_report_now(void);

#endif
