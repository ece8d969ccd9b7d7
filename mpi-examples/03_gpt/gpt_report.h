/**
 * @file
 * What rank 0 prints. All functions do nothing on other ranks, and are local.
 */
#ifndef GPT_REPORT_H
#define GPT_REPORT_H

#include "gpt_trainer.h"
#include "mpi-examples/common/example_bar.h"
#include "mpi-examples/common/example_node.h"

typedef struct gpt_report {
    int                speaks; /* this is rank 0 */
    const gpt_options *options;
    example_bar        bar;
} gpt_report;

/** What is known of the steps since the last line. */
typedef struct gpt_interval {
    size_t step;    /* the last one, counted from 1 */
    double loss;    /* mean over the interval and all ranks, in nats per byte */
    double norm;    /* of the last gradient */
    double seconds; /* of the interval; what follows is a mean over ranks */
    double wait_seconds;
    double communication_seconds; /* of a core: what the library's thread and the caller, while it waits, have used */
    double system_seconds;        /* of a core: what the process has used in the kernel, for communication or not */
    size_t tokens;
    size_t skipped; /* steps */
    double scale;   /* of the loss; 0 where it is not scaled */
} gpt_interval;

void gpt_report_open(gpt_report *report, const fsdp_context *ctx, const gpt_options *options);

/** Model, ranks, data, training. */
void gpt_report_header(const gpt_report *report, const gpt_trainer *trainer, const gpt_data *data,
                       const example_node *node, size_t blas_threads);

/** The lines of the budget of each rank, beside those of one rank on its own. */
void gpt_report_budget(const gpt_report *report, const gpt_trainer *trainer);

/** Removes the bar and prints a line. */
void gpt_report_interval(const gpt_report *report, const gpt_interval *interval);

/** One step's loss, and a hash of all parameters, to the last bit. */
void gpt_report_exact_loss(const gpt_report *report, size_t step, double loss);
void gpt_report_exact_hash(const gpt_report *report, uint64_t hash);

/** What the hook has sent, if there is one. */
void gpt_report_traffic(const gpt_report *report, const gpt_traffic *traffic);

/** Under --exact to the last bit too. */
void gpt_report_validation(const gpt_report *report, double loss, size_t bytes);
void gpt_report_sample(const gpt_report *report, const unsigned char *text, size_t bytes);

/** What the library holds and held, beside what the budget said. */
void gpt_report_memory(const gpt_report *report, const fsdp_memory *memory, const fsdp_budget *budget);

/** On a mesh, how many ranks have held what their budgets said. */
void gpt_report_kept_budgets(const gpt_report *report, size_t kept, int ranks);

/** Where the time of `steps` steps went. */
void gpt_report_profile(const gpt_report *report, const gpt_profile *profile, size_t steps);

#endif
