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
    float *means;             /* of the pass that was reduced last */
    float *local[MOST_RANKS]; /* gradients that were not communicated */
    float *buffer[MOST_RANKS];
    float *pass[MOST_RANKS];    /* gradient view of an open backward pass of its unit: of each name, owner or not */
    float *partial[MOST_RANKS]; /* by group: what was reduced within it only */
    double norm;
    bool   has_gradient, has_local, has_partial, divided;
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
    bool                   syncs, in_group;
    int                    absent;  /* the rank without samples; -1 */
    double                 divisor; /* of this step; 0 */
    size_t                 steps[MOST_OPTIMIZERS];
    double                 lr[MOST_OPTIMIZERS], group_lr[MOST_GROUPS];
    double                 norm; /* of the last clipping */
    double                 scale;
    float                 *left[MOST_TENSORS]; /* by the int8 hook, of the flat parameter whose first tensor that is */
    size_t                 n_left[MOST_TENSORS];
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
float serial_mean(const planned_segment *segment, const float *values, fsdp_dtype dtype);
/** The same in two steps: what each group has, and the mean of that over all ranks. */
void  serial_sums_of_groups(const planned_segment *segment, const float *values, fsdp_dtype dtype, float *sums);
float serial_mean_of_sums(const planned_segment *segment, const float *sums, fsdp_dtype dtype);
/** Whether there is more than one group. */
bool serial_has_groups(const planned_segment *segment);
/** How many ranks share one copy of the model; all, unless the strategy is a hybrid one. */
int serial_group_size(const planned_segment *segment);

/** Of those between whom a hook averages each stands for so many ranks. */
int serial_hook_group(const planned_segment *segment);
/** The mean in f32 of the ranks of a group, which a hook then sees; and of what all groups have. */
float serial_mean_of_group(const planned_segment *segment, const float *values);
float serial_mean_of_groups(const planned_segment *segment, const float *values, fsdp_dtype dtype);

/** What a rank's pass gives for an element, with what it has kept back; and means of a tensor, added to its gradient. */
float serial_term(const serial_model *s, size_t name, int rank, size_t i);
void  serial_add_means(serial_model *s, size_t name, const float *means);

/** ELEMENTS that share a scale in the int8 hook. */
enum { INT8_BLOCK = 32 };
/** Whether it averages the gradients. */
bool serial_uses_int8(const planned_segment *segment);
void serial_reduce_by_int8(serial_model *s, size_t unit);
void serial_rescale_hook(serial_model *s, double factor);
void serial_forget_hook(serial_model *s);

/** What the divisor of the step, and that of the options, multiply a mean by. */
double serial_factor(const serial_model *s, double divisor);
void   serial_divide(serial_model *s);
void   serial_norms(serial_model *s, const planned_op *op);
void   serial_scale(serial_model *s, double factor);
void   serial_unscale(serial_model *s);
void   serial_clip(serial_model *s, const planned_op *op);
void   serial_step(serial_model *s, size_t optimizer);
void   serial_forget_gradients(serial_model *s);

/** What one step, counted from 1, makes of a tensor's elements by the built-in kind of these options, but Muon. */
typedef struct serial_element {
    float *w, *m, *v;
    float  g, lr, decay;
} serial_element;
void serial_update_element(const fsdp_optimizer_options *o, const serial_element *e, size_t step);
/** The same of a whole matrix by Muon. */
void serial_update_matrix(const fsdp_optimizer_options *o, const planned_tensor *shape, const serial_tensor *tensor,
                          double lr, double decay);
/** Rounds moments, in blocks from the first on, to codes of 8 bits and their scales, in step number `step`, from 1 on. */
void serial_round_to_8_bits(float *moments, size_t n, bool is_signed, size_t step);

/** Gathers a tensor of blocks of 8-bit integers: those of a unit that are gathered together. */
void serial_gather_quantized(serial_model *s, size_t unit);
bool is_quantized(const serial_model *s, size_t t);

#endif
