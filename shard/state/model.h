/**
 * @file
 * What a model and its units consist of.
 *
 * Under every strategy a flat parameter is thought of as divided into one slice per rank, as fsdp_layout says. FULL_SHARD holds the
 * slice of this rank; NO_SHARD holds all of them, one after the other. What walks over the slices it holds, in order of
 * rank, therefore computes bitwise the same under both. Each flat parameter has a strategy of its own. The model's says which
 * ranks share a copy, so the hybrid ones, and no others, have flat parameters of the hybrid ones.
 */
#ifndef FSDPI_MODEL_H
#define FSDPI_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/collectives.h"
#include "fsdp/hook.h"
#include "fsdp/layout.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/model.h"
#include "kernels/kernels.h"
#include "lib/context/context.h"
#include "lib/mesh/axes.h"
#include "lib/node/window.h"
#include "shard/state/names.h"

enum { FSDPI_NAME_BYTES = 256, FSDPI_EVENTS_PER_UNIT = 8 };

typedef struct fsdpi_flat         fsdpi_flat;
typedef struct fsdpi_member       fsdpi_member;
typedef struct fsdpi_slot         fsdpi_slot;
typedef struct fsdpi_tensor_group fsdpi_tensor_group; /* shard/state/tensor_groups.h */

/** As it was described. */
typedef struct fsdpi_tensor {
    fsdpi_name           entry; /* among the model's tensors */
    const char          *name;
    fsdp_unit           *unit;
    struct fsdpi_tensor *owner; /* whose elements these are; itself unless it is tied */
    fsdp_dtype           dtype;
    fsdp_fill            fill;
    double               a, b;
    fsdp_fill_function   fill_values;
    void                *fill_state;
    unsigned             flags;
    bool                 shared; /* tied from another unit */
    fsdpi_tensor_group  *group;  /* the first that its name matches; NULL. Of a tied tensor its owner's counts */
    size_t               n_dims;
    size_t               shape[FSDP_MAX_DIMS]; /* of this position's part, as `count`: see shard/state/tp_part.h */
    size_t               whole_shape[FSDP_MAX_DIMS];
    size_t               count;     /* ELEMENTS */
    int                  tp_parts;  /* over how many positions of the tensor axis it is divided; 1: not */
    size_t               tp_row;    /* ELEMENTS of its part that follow each other in the whole */
    bool                 elsewhere; /* an earlier stage has it too, and its elements count there */
    size_t               copies;    /* else how many later ones have it */
    /* from commit on; of a tied tensor its owner's */
    fsdpi_member  *member; /* NULL for an ignored tensor */
    size_t         offset; /* of its first element in the flat parameter */
    int            dealt;  /* of a tensor that is dealt whole: the slice that it is in */
    unsigned char *whole;  /* of an ignored tensor: its memory */
} fsdpi_tensor;

typedef enum fsdpi_pass { FSDPI_CLOSED, FSDPI_FORWARD, FSDPI_BACKWARD } fsdpi_pass;

/** A gathered view: see shard/schedule/gather.c. */
typedef struct fsdpi_view {
    unsigned char *memory;
    fsdp_request  *gathering;
    fsdp_request  *unpacking; /* behind it, where the flat parameter is quantised and on the host */
    fsdpi_flat    *packed;    /* on a GPU: which one's slices it gathers, for the kernels that come behind */
    bool           gathered;
} fsdpi_view;

/**
 * Tensors that are divided over the ranks, gathered and reduced as one: those of a unit that are gathered in the same type
 * and are alike frozen or not, and belong to one group. A tensor that is tied from another unit is one of its own. PyTorch's FlatParameter.
 */
struct fsdpi_flat {
    fsdpi_flat           *next;
    fsdp_model           *model;
    fsdp_strategy         strategy;
    const char           *name;  /* the unit's, or of the unit's second one and on also its first tensor's */
    fsdp_dtype            dtype; /* in which it is gathered */
    bool                  frozen, quantized;
    fsdpi_tensor_group   *group;       /* NULL: none, as where it is frozen */
    size_t                granularity; /* FSDP_GRANULARITY_* or ELEMENTS of a block */
    size_t                n_tensors;
    fsdpi_tensor        **tensors;
    size_t               *counts;    /* ELEMENTS of each tensor */
    int                  *owners;    /* the slice of each, none below that of the one before; NULL: they are divided */
    fsdp_interval        *intervals; /* room for one slice's */
    fsdp_gradient_tensor *parts;     /* room for what a hook sees */
    fsdp_layout           layout;
    void                 *master;                  /* in the model's master_dtype, as `gradient` and `local` */
    unsigned char        *low;                     /* `master` as it is gathered; NULL where that is in the same type */
    void                 *gradient;                /* reduced; NULL where frozen */
    void                 *local;                   /* the whole one's, not reduced yet; NULL without local_gradients */
    bool                  has_gradient, has_local; /* since the last step */
    bool                  has_partial;             /* instead of `gradient`, sums of this group: FSDP_SYNC_GROUP */
    bool                  over_all;                /* a reduction over all ranks has been issued since the last step */
    bool                  divided;                 /* `gradient` by the divisor of the step */
    size_t                reducing;                /* reductions under way */
    size_t                gradient_passes;         /* that have been added up in `gradient`; 0 without one */
    size_t                checked_passes;          /* how many of them the loss scaler has seen; 0 before it has */
    uint64_t              master_hash; /* FSDP_VERIFY=full: what `master` was when the library last wrote it */
    fsdpi_view            view;        /* where it has a place of its own, in which it stays */
    unsigned char        *kept;        /* this rank's part of the last view that the node keeps; NULL */
    bool                  is_kept;     /* since the last change of the masters */
};

/** A flat parameter as one unit uses it. */
struct fsdpi_member {
    fsdpi_flat *flat;
    fsdpi_view *view; /* the flat parameter's, or `in_slot` */
    fsdpi_view  in_slot;
    size_t      slot_offset; /* BYTES */
    /* the gradient view: see shard/schedule/reduction.c */
    struct fsdpi_bucket *bucket;
    size_t               bucket_offset;
    unsigned char       *gradient_view;
    fsdpi_member        *next_in_bucket;
    fsdp_request        *reducing;
    bool                 landed; /* the result is in flat->gradient already */
};

struct fsdp_unit {
    fsdpi_name     entry; /* among the model's units */
    fsdp_unit     *next;
    fsdp_model    *model;
    const char    *name;
    size_t         index;
    size_t         n_tensors;
    fsdpi_tensor  *tensors;
    size_t         elements; /* of all its tensors, of tied and ignored ones too */
    size_t         bytes;    /* of this structure with all that it points to before commit */
    uint64_t       fingerprint;
    size_t         place;        /* see fsdp_unit_set_place() */
    bool           has_strategy; /* of its own */
    fsdp_strategy  strategy;
    size_t         n_members; /* from commit on, as the rest */
    fsdpi_member  *members;
    size_t         view_bytes;                 /* of all members whose views lie in a slot */
    size_t         gradients, whole_gradients; /* ELEMENTS of gradient views: of members that are divided, and whole */
    fsdpi_pass     pass;
    fsdpi_slot    *slot;      /* that it has; NULL */
    unsigned char *address;   /* where its slot is seen during passes, whichever that is; NULL: where it lies */
    double         begun;     /* its pass, for a trace */
    uint64_t       view_hash; /* FSDP_VERIFY=full */
};

/** A place for gathered views: see shard/state/slots.h. */
struct fsdpi_slot {
    unsigned char *memory;
    size_t         bytes;
    fsdp_unit     *unit; /* whose views lie there; NULL */
};

/** Gradient views that are reduced together. */
typedef struct fsdpi_bucket {
    struct fsdpi_bucket *next; /* among those under way, in order of issue */
    unsigned char       *memory;
    size_t               room, used; /* ELEMENTS */
    size_t               open;       /* views in their backward pass */
    fsdpi_member        *first, *last;
    bool                 whole; /* for flat parameters that every rank holds whole: for these alone */
    bool                 taken, closed, issued, replicated, failed;
    bool                 group_only; /* its result is a partial one */
    fsdp_request        *request;    /* of all views at once */
    char                 label[FSDPI_NAME_BYTES + 64];
} fsdpi_bucket;

/** Which rank's part a plan is for: one of those that share a copy by its number, or these. */
enum { FSDPI_LARGEST_RANK = -1, FSDPI_MEAN_RANK = -2, FSDPI_RANKS_OF_NODE = -3 };

/** What a model needs on one rank: counted for a budget, and allocated at commit. ELEMENTS unless they are called bytes. */
typedef struct fsdpi_plan {
    fsdp_strategy strategy;
    int           size, group;           /* ranks in all, and that share one copy */
    int           rank;                  /* whose part it is: see shard/state/dealt.h */
    size_t        parameters, trainable; /* without padding */
    size_t        padded, padded_trainable;
    size_t        held, held_trainable; /* of all flat parameters, by one rank */
    size_t        plain;                /* of `held_trainable`: what belongs to no group */
    size_t        state_bytes;          /* of moments of what does */
    size_t        plain_moment;         /* BYTES of one moment of `plain`, in the type that the model's options say */
    size_t        plain_elements, whole_state_bytes; /* the same held whole, without padding */
    size_t        low_bytes;
    size_t        local;
    size_t        ignored_bytes;
    size_t        kept, n_kept; /* BYTES of views that have a place of their own */
    size_t        n_views;      /* slots for the others */
    size_t        views_bytes;  /* in all, once per node */
    size_t        kept_on_node; /* BYTES of one rank's part of views that its node keeps: see shard/state/node_part.h */
    size_t        whole_trainable;    /* padded, of what every rank holds whole */
    size_t        n_buckets, n_whole; /* and how many of them, behind the others, are for such gradients */
    size_t        bucket, buckets;    /* one of these, and all buckets together */
    size_t        n_flats, n_members, n_tensors, name_bytes; /* see shard/state/flat.c */
    size_t        gathers, reductions;                       /* under way at a time */
    size_t        bookkeeping_bytes;
    /* of a model on a GPU; else 0 */
    size_t norm_bytes, norm_scratch_bytes;
    size_t longest; /* of one flat parameter: most that a rank holds with a gradient */
} fsdpi_plan;

struct fsdp_loss_scaler {
    fsdp_model              *model;
    fsdp_loss_scaler_options options;
    fsdp_loss_scaler_state   state;
    bool                     finite; /* what was found of the gradients that count as checked */
};

/** What a norm is made of: one or the other. */
typedef union fsdpi_norm {
    fsdpi_exact_sum squares;
    double          largest;
} fsdpi_norm;

/** What fsdp_model_replay() repeats: see shard/schedule/replay.h. */
typedef struct fsdpi_replay {
    uint32_t *last, *now;    /* beginnings and ends of passes in the last step and since it; NULL: none are recorded */
    size_t    n_last, n_now; /* how many there were: more than fit in is none */
} fsdpi_replay;

/** Streams that bring masters and moments to the GPU and back: see shard/optimizer/optimizer_device.c. */
typedef struct fsdpi_offload {
    fsdpi_gpu_stream in, out; /* NULL where nothing is offloaded */
} fsdpi_offload;

/** Where on a mesh this rank's part of a model is: see shard/state/plane.h. Along an axis that there is not, position 0 of 1. */
typedef struct fsdpi_plane {
    fsdp_context  *ctx;             /* of all ranks that have parts of the model: its own, unless there are others */
    fsdp_mesh     *mesh;            /* NULL: none */
    fsdpi_axis_set axes, data_axes; /* longer than 1 */
    fsdpi_axis_set tensor_axes, stage_axes;
    int            tp_size, tp_position; /* along the tensor axis */
    int            n_stages, stage;
    char           tensor_text[FSDP_MAX_AXES * FSDP_AXIS_NAME_BYTES]; /* what the options call them: */
    char           stage_text[FSDP_MAX_AXES * FSDP_AXIS_NAME_BYTES];  /* the caller's may be gone */
} fsdpi_plane;

struct fsdp_model {
    fsdp_context      *ctx;
    fsdp_context      *shards;   /* the ranks that share one copy; `ctx` itself unless there are several */
    fsdp_context      *replicas; /* the ranks that hold the same part of other copies; NULL where there is one */
    bool               groups_are_nodes; /* under a hybrid strategy: the ranks that share a copy are a node each */
    fsdpi_plane        plane;
    fsdpi_owned        owned;
    fsdp_model_options options;
    fsdp_dtype         master_dtype;     /* of masters, reduced gradients and gradients that have not been reduced */
    const struct fsdpi_compute *compute; /* by the host or by a GPU: see shard/storage/compute.h */
    fsdp_unit                  *first, *last;
    size_t                      n_units;
    fsdpi_names                 unit_names, tensor_names;
    fsdpi_tensor_group         *tensor_groups; /* in the order in which they were added */
    fsdpi_flat                 *flats;         /* from commit on, in order of the units */
    void                       *flats_memory;
    fsdp_status                 add_status; /* of the first fsdp_unit_add() that failed */
    char                        add_error[FSDPI_DETAIL_BYTES];
    bool                        committed;
    bool                        divides, holds_whole; /* some flat parameter is, or is held whole by every rank */
    bool                        has_requests;         /* reserved, for what a step has under way */
    bool                        syncs;                /* passes reduce their gradients */
    bool                        group_only;           /* as far as the group: FSDP_SYNC_GROUP */
    bool                        keeps;                /* gathered views stay between passes, as far as there is room */
    double                      step_divisor;         /* 0: that of the options */
    bool                        failed; /* a pass has since fsdp_model_zero_grad(): see shard/schedule/failed_step.c */
    fsdp_status                 error;  /* with which it did, or a later call that left the step as it was; FSDP_OK */
    char                        error_text[FSDPI_DETAIL_BYTES];
    size_t                      open; /* units in a pass */
    fsdpi_plan                  plan;
    void                       *masters, *reduced, *locals; /* of all units, one after the other */
    void                       *offloaded_masters;          /* instead of `masters` */
    unsigned char              *lows, *views, *gradient_views, *ignored;
    unsigned char              *kept;         /* what this rank keeps of views for its node */
    union fsdpi_norm           *norm;         /* in memory that the GPU writes; NULL on the host */
    void                       *norm_scratch; /* on the GPU */
    fsdpi_offload               offload;
    fsdp_status
         compute_status; /* the first failure on the GPU that nobody has been told: see shard/storage/compute.h */
    char compute_error[FSDPI_DETAIL_BYTES];
    fsdpi_slot   *slots;  /* of `views`: none smaller than the next */
    fsdpi_window  window; /* the addresses of all units: see shard/storage/fixed_addresses.h */
    fsdpi_bucket *buckets;
    fsdpi_bucket *filling;
    fsdpi_bucket *issued_first; /* and those behind it: in order of issue */
    fsdp_hook    *hook;         /* NULL: none */
    float        *hook_room;    /* where it works on gradients of a GPU; NULL */
    size_t        n_issued;     /* buckets since the last step */
    size_t       *events;       /* the last ones, FSDPI_EVENTS_PER_UNIT for each unit: see shard/schedule/gather.c */
    size_t        n_events;
    size_t        expected; /* which of them and of those behind it come next; n_events: unknown */
    void         *replay_memory;
    fsdpi_replay  replay; /* of passes */
    uint64_t      order;  /* a hash of the events since the last step, which says whether ranks know the same ones */
    struct fsdp_optimizer *optimizers;
    struct fsdp_lbfgs     *lbfgs;            /* instead of optimizers; NULL: none */
    fsdp_loss_scaler      *loss_scaler;      /* NULL: none */
    fsdp_loss_scaler       loss_scaler_room; /* where it is, so that budgets count it */
};

static inline bool fsdpi_is_on_device(const fsdp_model *model)
{
    return model->options.placement != FSDP_ON_HOST;
}

/** BYTES of both records of passes. */
static inline size_t fsdpi_replay_bytes(const fsdp_model *model)
{
    return model->options.recorded_passes * 2 * 2 * sizeof(uint32_t);
}

static inline bool fsdpi_is_offloaded(const fsdp_model *model)
{
    return model->options.placement == FSDP_ON_DEVICE_OFFLOADED;
}

/** BYTES of one element of a master or gradient. */
static inline size_t fsdpi_master_width(const fsdp_model *model)
{
    return fsdp_dtype_size(model->master_dtype);
}

/** Whether parameters of that WIDTH are held as they are gathered, beside their masters. */
static inline bool fsdpi_has_low(const fsdp_model *model, size_t width)
{
    return width != fsdpi_master_width(model) || fsdpi_is_offloaded(model);
}

#endif
