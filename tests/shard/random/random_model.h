/**
 * @file
 * A random model and a random program that trains it: a pure function of a seed, the number of ranks, and the features that
 * may occur. What is here is data; the reference (serial.h) and the library (library.h) both follow it, op by op.
 */
#ifndef FSDP_TESTS_RANDOM_MODEL_H
#define FSDP_TESTS_RANDOM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fsdp/fsdp.h"

enum {
    MOST_RANKS      = 8,
    MOST_UNITS      = 6,
    MOST_TENSORS    = 40,
    MOST_OPTIMIZERS = 4,
    MOST_GROUPS     = 3,
    MOST_SEGMENTS   = 3,
    MOST_OPS        = 1200
};

/** What may occur in a model, and what a failing one is tried without: name, text. */
#define FEATURE_LIST(X)                                                                                                \
    X(MANY_UNITS, "several units")                                                                                     \
    X(MANY_TENSORS, "several tensors in a unit")                                                                       \
    X(LARGE, "large tensors")                                                                                          \
    X(TIES, "tied tensors")                                                                                            \
    X(FROZEN, "frozen tensors")                                                                                        \
    X(IGNORED, "ignored tensors")                                                                                      \
    X(TYPES, "16-bit parameters, and tensors of types of their own")                                                   \
    X(REDUCE_TYPES, "gradients in 16 bits")                                                                            \
    X(STRATEGIES, "strategies other than FULL_SHARD")                                                                  \
    X(NODES, "several nodes")                                                                                          \
    X(SETTINGS, "settings")                                                                                            \
    X(SEGMENTS, "checkpoints that another configuration loads")                                                        \
    X(STEPS, "several steps")                                                                                          \
    X(MICRO_BATCHES, "several micro-batches")                                                                          \
    X(LOCAL, "passes without communication")                                                                           \
    X(SHUFFLE, "changed orders of units")                                                                              \
    X(REPEATED, "units that are used twice")                                                                           \
    X(NESTED, "nested units")                                                                                          \
    X(RECOMPUTED, "forward passes within backward ones")                                                               \
    X(UNUSED, "units that a micro-batch leaves out")                                                                   \
    X(IDLE, "units that a step leaves out")                                                                            \
    X(ABSENT, "ranks without samples")                                                                                 \
    X(KEPT, "parameters that stay gathered")                                                                           \
    X(GROUP_SYNC, "gradients reduced within the group only")                                                           \
    X(EVALUATION, "forward passes between steps")                                                                      \
    X(OPTIMIZERS, "optimizers other than SGD")                                                                         \
    X(GROUPS, "groups of an optimizer")                                                                                \
    X(MOMENTS, "bf16 moments")                                                                                         \
    X(RATES, "learning rates that change")                                                                             \
    X(DIVISOR, "a gradient divisor")                                                                                   \
    X(STEP_DIVISOR, "a gradient divisor for one step")                                                                 \
    X(NORMS, "norms apart from clipping, of the model and of each tensor")                                             \
    X(SCALING, "gradients scaled by a factor")                                                                         \
    X(CLIPPING, "clipping")                                                                                            \
    X(SCALER, "a loss scaler")                                                                                         \
    X(OVERFLOWS, "gradients that overflow")                                                                            \
    X(QUANTIZED, "parameters gathered as 8-bit integers")                                                              \
    X(HOOKS, "gradient hooks")                                                                                         \
    X(POWER_SGD, "PowerSGD, and so results within a tolerance")                                                        \
    X(GRANULARITY, "blocks, and whole tensors")                                                                        \
    X(TENSOR_IO, "tensors exported and imported")                                                                      \
    X(FAILURES, "steps that fail and are repeated")                                                                    \
    X(SMALL, "small parameters held whole")                                                                            \
    X(UNIT_STRATEGIES, "units with strategies of their own")                                                           \
    X(SEVERAL_OPTIMIZERS, "several optimizers, each for a group of tensors")                                           \
    X(TURNS, "steps that some optimizers sit out")                                                                     \
    X(MUON, "Muon for matrices")                                                                                       \
    X(CUSTOM, "optimizers of the program's own")                                                                       \
    X(CUSTOM_GRANULARITY, "blocks, and whole tensors, for those of the program's own")                                 \
    X(MOMENTS_8_BIT, "moments in 8 bits")                                                                              \
    X(KEPT_ON_NODE, "parameters that nodes keep")

#define FEATURE_ENUMERATOR(name, text) WITH_##name,
typedef enum feature { FEATURE_LIST(FEATURE_ENUMERATOR) N_FEATURES } feature;
#undef FEATURE_ENUMERATOR

/** Bits by feature. */
#define ALL_FEATURES ((UINT64_C(1) << N_FEATURES) - 1)

const char *feature_text(feature which);

typedef struct planned_tensor {
    char       name[48];
    size_t     unit, n_dims, shape[FSDP_MAX_DIMS];
    size_t     count; /* ELEMENTS */
    fsdp_dtype dtype;
    fsdp_fill  fill;
    double     a, b;
    unsigned   flags;
    size_t     owner; /* of its elements: itself, or the tensor that it is tied to */
    size_t     first; /* of its unit's tensors the first with that owner */
} planned_tensor;

typedef struct planned_unit {
    char   name[48];
    size_t first, end; /* its tensors */
    bool   trainable;  /* has a gradient */
} planned_unit;

typedef struct planned_optimizer {
    const char            *pattern; /* of its group of tensors; NULL: those that no group has */
    fsdp_optimizer_options options; /* of a built-in kind */
    bool                   custom;  /* by a function of the program's, which does what that kind does */
} planned_optimizer;

/** Tensors of one optimizer with a rate of their own. */
typedef struct planned_group {
    size_t               optimizer;
    const char          *pattern;
    fsdp_optimizer_group options;
} planned_group;

typedef enum op_kind {
    OP_FORGET,         /* the activations of the last micro-batch */
    OP_BEGIN_FORWARD,  /* of a unit */
    OP_END_FORWARD,    /* of a unit */
    OP_BEGIN_BACKWARD, /* of a unit; n: 1 + the rank on which a gradient overflows */
    OP_END_BACKWARD,   /* of a unit */
    OP_SYNC,           /* n: an fsdp_sync */
    OP_KEEP,           /* n: 0 or 1 */
    OP_BEGIN_ABSENT,   /* rank `root` repeats the passes up to the next one from its record */
    OP_END_ABSENT,
    OP_DIVISOR, /* value: for this step */
    OP_NORM,    /* then clipping with it; value: the most */
    OP_SCALE,   /* value: the factor */
    OP_ZERO_GRAD,
    OP_UNSCALE,
    OP_CLIP_NORM,     /* value: the most */
    OP_CLIP_NORM_INF, /* value: the most */
    OP_CLIP_VALUE,    /* value: the limit */
    OP_STEP,          /* n: an optimizer */
    OP_SET_RATE,      /* value; n: 0, or 1 + a group; unit: an optimizer */
    OP_SET_BUFFERS,   /* ignored tensors get new values */
    OP_EXPORT,        /* n: a tensor; root */
    OP_IMPORT,        /* n: a tensor; root */
    OP_FAIL,          /* rank `root` ends a pass that is not open (n 0), or begins another one than the others (n 1) */
    OP_RECOVER        /* all ranks clear their gradients */
} op_kind;

typedef struct planned_op {
    op_kind kind;
    size_t  unit, n;
    int     root;
    double  value;
} planned_op;

typedef enum hook_kind { HOOK_NONE, HOOK_CUSTOM, HOOK_BF16, HOOK_F16, HOOK_INT8, HOOK_POWER_SGD } hook_kind;

/** One configuration, from its beginning or a checkpoint to a checkpoint. */
typedef struct planned_segment {
    int                     size; /* ranks */
    fsdp_config             config;
    fsdp_model_options      options;
    fsdp_checkpoint_options checkpoint;
    hook_kind               hook;
    size_t                  granularities[MOST_OPTIMIZERS]; /* of the optimizers' groups */
    int                     strategies[MOST_UNITS];         /* of units; -1: the model's */
    planned_op              ops[MOST_OPS];
    size_t                  n_ops;
} planned_segment;

typedef struct random_model {
    uint64_t                 seed, features;
    planned_tensor           tensors[MOST_TENSORS];
    planned_unit             units[MOST_UNITS];
    planned_optimizer        optimizers[MOST_OPTIMIZERS];
    planned_group            groups[MOST_GROUPS];
    planned_segment          segments[MOST_SEGMENTS];
    size_t                   n_tensors, n_units, n_optimizers, n_groups, n_segments;
    bool                     scales; /* has a loss scaler */
    fsdp_loss_scaler_options scaler;

    /** Its gradients have rank 2, which PowerSGD of that rank sends whole but for rounding: all is f32, and compared within
     * TOLERANCE x (1 + what is expected). */
    bool approximate;
} random_model;

#define TOLERANCE 1e-4

/** Draws it. `size`: the ranks there are. `features`: a bit for each that may occur. */
void draw_random_model(random_model *m, uint64_t seed, int size, uint64_t features);

/** Appends the ops of a segment, whose options are there; `s` is the segment's number. For draw_random_model() alone. */
void draw_program(random_model *m, size_t s);

/** Writes what a model is, in lines for people. */
void describe_random_model(FILE *out, const random_model *m);
/** One op in a few words. */
void describe_op(const random_model *m, const planned_op *op, char *text, size_t size);

/** Of a tensor's owner. */
bool is_ignored(const random_model *m, size_t t);
bool has_gradient(const random_model *m, size_t t);
/** The optimizer of a trainable tensor: the first whose pattern its owner's name matches. */
size_t optimizer_of(const random_model *m, size_t t);
/** FSDP_MUON is among them: matrices that are whole on one rank each. */
bool has_muon(const random_model *m);
/** The type in which it is gathered, or in which an ignored one is held: see fsdp_tensor.dtype. */
fsdp_dtype type_of_view(const random_model *m, const fsdp_model_options *options, size_t t);

#endif
