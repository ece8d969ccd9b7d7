/**
 * @file
 * The reference: training a random model in one process that knows what every rank computes. It shares no code with the
 * library. Arrays are whole tensors, one after the other, without layout, shards, buckets or kernels; what it does is what
 * the public headers say, element by element.
 */
#ifndef FSDP_TESTS_RANDOM_SERIAL_H
#define FSDP_TESTS_RANDOM_SERIAL_H

#include "tests/shard/random/layer.h"
#include "tests/shard/random/random_model.h"

/** Of one tensor; the arrays of a tensor that is tied are its owner's. */
typedef struct serial_tensor {
    float *master, *gradient, *first, *second;
    float *view;              /* as it was last gathered */
    float *local[MOST_RANKS]; /* gradients that were not communicated */
    float *buffer[MOST_RANKS];
    float *pass[MOST_RANKS]; /* gradient view of an open backward pass of its unit: of each name, owner or not */
    bool   has_gradient, has_local;
} serial_tensor;

typedef struct serial_model {
    const random_model    *m;
    const planned_segment *segment;
    serial_tensor          tensors[MOST_TENSORS];
    float                 *memory;
    activations            ranks[MOST_RANKS];
    bool                   open[MOST_UNITS];
    size_t                 pass_of[MOST_UNITS]; /* number of its open backward pass */
    size_t                 passes;              /* backward passes so far */
    bool                   syncs;
    size_t                 steps;
    double                 lr, group_lr[MOST_GROUPS];
    double                 norm; /* of the last clipping */
    double                 scale;
    size_t                 clean_steps, skipped_steps;
    bool                   unscaled, finite;
    int                    stepped; /* by the last step */
} serial_model;

/** Initial values. Nonzero if there is no memory. */
int  serial_open(serial_model *s, const random_model *m);
void serial_close(serial_model *s);

/** From here on under this configuration: as after fsdp_checkpoint_load() where it is not the first. */
void serial_begin_segment(serial_model *s, const planned_segment *segment);

void serial_do(serial_model *s, const planned_op *op);

/* ---- parts, for serial.c alone ----------------------------------------------------------------------------------- */

/** The mean over ranks of `values`, each in `dtype`, as the model's strategy reduces them. */
float serial_mean(const planned_segment *segment, float *values, fsdp_dtype dtype);
/** How many ranks share one copy of the model; all, unless the strategy is a hybrid one. */
int serial_group_size(const planned_segment *segment);

void serial_unscale(serial_model *s);
void serial_clip(serial_model *s, const planned_op *op);
void serial_step(serial_model *s);
void serial_forget_gradients(serial_model *s);

/** Gathers a tensor of blocks of 8-bit integers: those of a unit that are gathered together. */
void serial_gather_quantized(serial_model *s, size_t unit);
bool is_quantized(const serial_model *s, size_t t);

#endif
