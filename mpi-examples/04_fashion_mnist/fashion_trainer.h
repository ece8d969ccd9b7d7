/**
 * @file
 * The network as sharded units: how a pass opens and closes them, and what a step and an epoch consist of.
 *
 * A micro-batch is the same for any number of ranks: a part of the epoch's order of images, of which each rank takes a
 * contiguous slice. Slices differ by an image where the ranks do not divide it, and the last micro-batch of an epoch is
 * smaller; a rank may even have none. Every image weighs the same all the same: each rank scales the sum over its images
 * by ranks / (images in the step), and the mean over ranks that the library takes, added up over the micro-batches of the
 * step, is the mean over all images of the step.
 */
#ifndef FASHION_TRAINER_H
#define FASHION_TRAINER_H

#include "fashion_options.h"
#include "mpi-examples/common/example_views.h"

typedef struct fashion_trainer {
    const fashion_options  *options;
    const fashion_data     *data;
    fsdp_context           *ctx;
    fsdp_model             *model;
    fsdp_unit              *units[FASHION_N_UNITS];
    example_views           views[FASHION_N_UNITS];
    fsdp_optimizer         *optimizer;
    fashion_activations    *activations;
    unsigned char          *labels; /* of this rank's images in the pass */
    double                 *statistics;
    fsdp_batch_norm_running running[FASHION_BLOCKS]; /* in the units, as tensors that are not divided */
    fsdp_batch_norm_saved   saved[FASHION_BLOCKS];
    fsdp_budget             budget;
    example_checkpoint      checkpoint;
    fsdp_checkpoint_state   state; /* from fashion_trainer_resume() on: `step` are those taken */
} fashion_trainer;

/** How often each class, the row, was taken for each class, the column. */
typedef struct fashion_confusion {
    int64_t counts[FASHION_CLASSES][FASHION_CLASSES];
} fashion_confusion;

/** The share of images that were taken for what they are. */
double fashion_accuracy(const fashion_confusion *confusion);

/** Steps in an epoch. */
size_t fashion_steps_per_epoch(const fashion_options *options, const fashion_data *data);

/** The most images that a rank has in a pass. */
size_t fashion_images_per_rank(const fsdp_context *ctx, const fashion_options *options);

/**
 * Describes the network and computes its budget. Collective.
 * @return FSDP_OK; another status: rank 0 or the library has said why. Close it all the same.
 */
fsdp_status fashion_trainer_open(fsdp_context *ctx, const fashion_options *options, const fashion_data *data,
                                 fashion_trainer *trainer);

/** Allocates what has been described. Collective. `memory_limit`: BYTES per rank that all of it may take. */
fsdp_status fashion_trainer_commit(fashion_trainer *trainer, size_t memory_limit);

/** Goes on where an earlier run has stopped, as the options say. Collective. */
fsdp_status fashion_trainer_resume(fashion_trainer *trainer);

/** When `steps` have been taken: saves if it is time. Collective. @param[out] stop  1: on a signal training ends here */
fsdp_status fashion_trainer_save(fashion_trainer *trainer, size_t steps, int *stop);

/** Completes what is being saved. Collective. */
fsdp_status fashion_trainer_close_checkpoint(fashion_trainer *trainer);

void fashion_trainer_close(fashion_trainer *trainer);

/**
 * One step: its micro-batches, then the update. Collective.
 * @param[in]  step    within the epoch
 * @param[out] loss    the sum over this rank's images
 * @param[out] images  of all ranks in this step
 */
fsdp_status fashion_trainer_step(fashion_trainer *trainer, size_t epoch, size_t step, double lr, double *loss,
                                 size_t *images);

/** Classifies all test images. Collective; the result is the same on all ranks. */
fsdp_status fashion_trainer_test(fashion_trainer *trainer, fashion_confusion *confusion);

#endif
