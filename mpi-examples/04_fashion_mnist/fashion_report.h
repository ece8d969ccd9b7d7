/**
 * @file
 * What rank 0 prints. All functions print nothing on other ranks, and are local.
 */
#ifndef FASHION_REPORT_H
#define FASHION_REPORT_H

#include "fashion_trainer.h"
#include "mpi-examples/common/example_bar.h"
#include "mpi-examples/common/example_node.h"

typedef struct fashion_report {
    int                    speaks; /* this is rank 0 */
    const fashion_options *options;
    example_bar            bar;
} fashion_report;

/** What is known of an epoch. */
typedef struct fashion_epoch {
    size_t epoch;         /* counted from 1 */
    double loss;          /* mean over the images and all ranks */
    double accuracy;      /* on the test images: 0 to 1 */
    double train_seconds; /* of training */
    double seconds;       /* with the test */
    double wait_seconds;  /* of training, mean over ranks */
    size_t images;        /* trained on */
} fashion_epoch;

void fashion_report_open(fashion_report *report, const fsdp_context *ctx, const fashion_options *options);

/** Model, ranks, data, training. */
void fashion_report_header(const fashion_report *report, const fsdp_context *ctx, const fashion_data *data,
                           const example_node *node, size_t blas_threads);

/** The lines of the budget of one rank. */
void fashion_report_budget(const fashion_report *report, const fsdp_budget *budget);

/** Removes the bar and prints the line of an epoch. */
void fashion_report_epoch(const fashion_report *report, const fashion_epoch *epoch);

/** One step's loss, and a hash of all parameters, to the last bit. */
void fashion_report_exact_loss(const fashion_report *report, size_t step, double loss);
void fashion_report_exact_hash(const fashion_report *report, uint64_t hash);

/** A row per class, with the share of each that was found. */
void fashion_report_confusion(const fashion_report *report, const fashion_confusion *confusion);

/** What the library holds and held, beside what the budget said. */
void fashion_report_memory(const fashion_report *report, const fsdp_memory *memory, const fsdp_budget *budget);

#endif
