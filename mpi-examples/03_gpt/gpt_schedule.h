/**
 * @file
 * The order in which a pipeline computes: one of the library's schedules, or one from a file.
 */
#ifndef GPT_SCHEDULE_H
#define GPT_SCHEDULE_H

#include "gpt_options.h"

typedef struct gpt_schedule {
    const char *name; /* of the library's; NULL: it is in `text` */
    char       *text;
    int         stages, stages_per_rank;
    int         splits; /* has backward passes in two actions */
    int         joins;  /* has backward passes in one action */
} gpt_schedule;

/**
 * Finds out what --schedule means on these ranks, and that layers can be divided evenly over its stages. Rank 0 reads a file
 * for all. Collective. Release it in any case.
 */
fsdp_status gpt_schedule_open(fsdp_context *ctx, const gpt_options *options, gpt_schedule *schedule);
void        gpt_schedule_release(gpt_schedule *schedule);

#endif
