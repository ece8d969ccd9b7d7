/**
 * @file
 * What rank 0 prints. All functions do nothing on other ranks, and are local.
 */
#ifndef GPT_REPORT_H
#define GPT_REPORT_H

#include "gpt_data.h"
#include "gpt_options.h"
#include "gpt_threads.h"

typedef struct gpt_report {
    int                speaks; /* this is rank 0 */
    int                bar;    /* whether there is a progress bar */
    double             started, drawn;
    const gpt_options *options;
} gpt_report;

/** What is known of the steps since the last line. */
typedef struct gpt_interval {
    size_t step;         /* the last one, counted from 1 */
    double loss;         /* mean over the interval and all ranks, in nats per byte */
    double norm;         /* of the last gradient */
    double seconds;      /* of the interval */
    double wait_seconds; /* mean over ranks */
    size_t tokens;
} gpt_interval;

void gpt_report_open(gpt_report *report, const fsdp_context *ctx, const gpt_options *options);

/** Model, ranks, data. */
void gpt_report_header(const gpt_report *report, const fsdp_context *ctx, const gpt_data *data, const gpt_node *node,
                       size_t blas_threads, size_t activation_bytes);

/** The lines of the budget of one rank. */
void gpt_report_budget(const gpt_report *report, const fsdp_budget *budget);

/** From here on time counts. */
void gpt_report_start(gpt_report *report);

/** Redraws the bar after `step` steps, if there is one and it is time. */
void gpt_report_progress(gpt_report *report, size_t step);

/** Removes the bar, so that a line can be printed. */
void gpt_report_clear(const gpt_report *report);

void gpt_report_interval(const gpt_report *report, const gpt_interval *interval);

/** One step's loss, to the last bit. */
void gpt_report_exact_loss(const gpt_report *report, size_t step, double loss);
void gpt_report_exact_hash(const gpt_report *report, uint64_t hash);

void gpt_report_validation(const gpt_report *report, double loss, size_t bytes);
void gpt_report_sample(const gpt_report *report, const unsigned char *text, size_t bytes);

/** What the library holds and held, beside what the budget said. */
void gpt_report_memory(const gpt_report *report, const fsdp_memory *memory, const fsdp_budget *budget);

/** Where the time of `steps` steps went. */
void gpt_report_profile(const gpt_report *report, const gpt_profile *profile, size_t steps);

#endif
