/**
 * @file
 * A picture of a job: a row for each rank.
 */
#ifndef TOP_TABLE_H
#define TOP_TABLE_H

#include <stdio.h>

#include "tools/records/verdict.h"

/** What the last picture said of how long ranks had waited, so that the next can say it of the time in between. */
typedef struct top_before {
    struct top_waited *ranks;
    size_t             n;
} top_before;

/** Prints it, with at most so many rows (0: all), and keeps in `before` what the next one needs. */
void top_print(const verdict_job *job, const records *all, double after, size_t rows, top_before *before, FILE *file);

void top_forget(top_before *before);

#endif
