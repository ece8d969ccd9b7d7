/**
 * @file
 * What a model and its units consist of.
 *
 * Under every strategy a flat parameter is thought of as divided into one slice per rank, as fsdp_layout says. FULL_SHARD holds the
 * slice of this rank; NO_SHARD holds all of them, one after the other. What walks over the slices it holds, in order of
 * rank, therefore computes bitwise the same under both.
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
#include "lib/context.h"

enum { FSDPI_NAME_BYTES = 256, FSDPI_EVENTS_PER_UNIT = 8 };

typedef struct fsdpi_flat   fsdpi_flat;
typedef struct fsdpi_member fsdpi_member;

/** As it was described. */
typedef struct fsdpi_tensor {
    const char          *name;
    fsdp_unit           *unit;
    struct fsdpi_tensor *owner; /* whose elements these are; itself unless it is tied */
    fsdp_dtype           dtype;
    fsdp_fill            fill;
    double               a, b;
    unsigned             flags;
    bool                 shared; /* tied from another unit */
    size_t               n_dims;
    size_t               shape[FSDP_MAX_DIMS];
    size_t               count; /* ELEMENTS */
    /* from commit on; of a tied tensor its owner's */
    fsdpi_member  *member; /* NULL for an ignored tensor */
    size_t         offset; /* of its first element in the flat parameter */
    unsigned char *whole;  /* of an ignored tensor: its memory */
} fsdpi_tensor;

typedef enum fsdpi_pass { FSDPI_CLOSED, FSDPI_FORWARD, FSDPI_BACKWARD } fsdpi_pass;

/** A gathered view: see shard/gather.c. */
typedef struct fsdpi_view {
    unsigned char *memory;
    fsdp_request  *gathering;
    fsdp_request  *unpacking; /* behind it, where the flat parameter is quantised and on the host */
    fsdpi_flat    *packed;    /* on a GPU: which one's slices it gathers, for the kernels that come behind */
    bool           gathered;
} fsdpi_view;

/**
 * Tensors that are divided over the ranks, gathered and reduced as one: those of a unit that are gathered in the same type
 * and are alike frozen or not. A tensor that is tied from another unit is one of its own. PyTorch's FlatParameter.
 */
struct fsdpi_flat {
    fsdpi_flat           *next;
    fsdp_model           *model;
    const char           *name;  /* the unit's, or of the unit's second one and on also its first tensor's */
    fsdp_dtype            dtype; /* in which it is gathered */
    bool                  frozen, quantized;
    size_t                n_tensors;
    fsdpi_tensor        **tensors;
    size_t               *counts;    /* ELEMENTS of each tensor */
    fsdp_interval        *intervals; /* room for one slice's */
    fsdp_gradient_tensor *parts;     /* room for what a hook sees */
    fsdp_layout           layout;
    float                *master;
    unsigned char        *low;                     /* `master` as it is gathered; NULL where that is f32 */
    float                *gradient;                /* reduced; NULL where frozen */
    float                *local;                   /* the whole one's, not reduced yet; NULL without local_gradients */
    double               *norms;                   /* of each slice held, where the GPU computes them; NULL */
    bool                  has_gradient, has_local; /* since the last step */
    size_t                reducing;                /* reductions under way */
    size_t                gradient_passes;         /* that have been added up in `gradient`; 0 without one */
    size_t                checked_passes;          /* how many of them the loss scaler has seen; 0 before it has */
    fsdpi_view            view;                    /* where it has a place of its own, in which it stays */
};

/** A flat parameter as one unit uses it. */
struct fsdpi_member {
    fsdpi_flat *flat;
    fsdpi_view *view; /* the flat parameter's, or `in_slot` */
    fsdpi_view  in_slot;
    size_t      slot_offset; /* BYTES */
    /* the gradient view: see shard/reduction.c */
    struct fsdpi_bucket *bucket;
    size_t               bucket_offset;
    unsigned char       *gradient_view;
    fsdpi_member        *next_in_bucket;
    fsdp_request        *reducing;
    bool                 landed; /* the result is in flat->gradient already */
};

struct fsdp_unit {
    fsdp_unit     *next;
    fsdp_model    *model;
    const char    *name;
    size_t         index;
    size_t         n_tensors;
    fsdpi_tensor  *tensors;
    size_t         elements; /* of all its tensors, of tied and ignored ones too */
    size_t         bytes;    /* of this structure with all that it points to before commit */
    uint64_t       fingerprint;
    size_t         n_members; /* from commit on, as the rest */
    fsdpi_member  *members;
    size_t         view_bytes; /* of all members */
    size_t         gradients;  /* ELEMENTS of all members' gradient views */
    fsdpi_pass     pass;
    unsigned char *slot;      /* that it has; NULL */
    double         begun;     /* its pass, for a trace */
    uint64_t       view_hash; /* FSDP_VERIFY=full */
};

/** Gradient views that are reduced together. */
typedef struct fsdpi_bucket {
    struct fsdpi_bucket *next; /* among those under way, in order of issue */
    unsigned char       *memory;
    size_t               room, used; /* ELEMENTS */
    size_t               open;       /* views in their backward pass */
    fsdpi_member        *first, *last;
    bool                 taken, closed, issued, replicated, failed;
    fsdp_request        *request; /* of all views at once */
    char                 label[FSDPI_NAME_BYTES + 64];
} fsdpi_bucket;

/** What a model needs on one rank: counted for a budget, and allocated at commit. ELEMENTS unless they are called bytes. */
typedef struct fsdpi_plan {
    fsdp_strategy strategy;
    int           size, group;           /* ranks in all, and that share one copy */
    size_t        parameters, trainable; /* without padding */
    size_t        padded, padded_trainable;
    size_t        held, held_trainable; /* of all flat parameters, by one rank */
    size_t        low_bytes;            /* of all slices first, then of those held */
    size_t        local;
    size_t        ignored_bytes;
    size_t        n_views, view_bytes; /* slots; 0 where every flat parameter has a region */
    size_t        small_view_bytes;    /* of the last slot */
    size_t        views_bytes;         /* in all, once per node */
    size_t        n_buckets, bucket;
    size_t        small_bucket, buckets;                     /* the last one, and all together */
    size_t        n_flats, n_members, n_tensors, name_bytes; /* see shard/flat.c */
    size_t        bookkeeping_bytes;
    /* of a model on a GPU; else 0 */
    size_t norms; /* numbers: one for each slice held of each flat parameter */
    size_t norm_scratch_bytes;
    size_t shard, longest; /* of one flat parameter: largest slice, and most that a rank holds with a gradient */
} fsdpi_plan;

struct fsdp_loss_scaler {
    fsdp_model              *model;
    fsdp_loss_scaler_options options;
    fsdp_loss_scaler_state   state;
    bool                     finite; /* what was found of the gradients that count as checked */
};

/** Streams that bring masters and moments to the GPU and back: see shard/optimizer_device.c. */
typedef struct fsdpi_offload {
    fsdpi_gpu_stream in, out; /* NULL where nothing is offloaded */
} fsdpi_offload;

struct fsdp_model {
    fsdp_context      *ctx;
    fsdp_context      *shards;   /* the ranks that share one copy; `ctx` itself unless there are several */
    fsdp_context      *replicas; /* the ranks that hold the same part of other copies; NULL where there is one */
    fsdpi_owned        owned;
    fsdp_model_options options;
    fsdp_unit         *first, *last;
    size_t             n_units;
    fsdpi_flat        *flats; /* from commit on, in order of the units */
    void              *flats_memory;
    fsdp_status        add_status; /* of the first fsdp_unit_add() that failed */
    char               add_error[FSDPI_DETAIL_BYTES];
    bool               committed;
    bool               syncs;  /* passes reduce their gradients */
    bool               failed; /* a pass has since fsdp_model_zero_grad(): see shard/failed_step.c */
    fsdp_status        error;  /* with which it did, or a later call that left the step as it was; FSDP_OK */
    char               error_text[FSDPI_DETAIL_BYTES];
    size_t             open; /* units in a pass */
    fsdpi_plan         plan;
    float             *masters, *reduced, *locals; /* of all units, one after the other */
    float             *offloaded_masters;          /* instead of `masters` */
    unsigned char     *lows, *views, *gradient_views, *ignored;
    double            *norms;        /* in memory that the GPU writes */
    void              *norm_scratch; /* on the GPU */
    fsdpi_offload      offload;
    fsdp_status        compute_status; /* the first failure on the GPU that nobody has been told: see shard/compute.h */
    char               compute_error[FSDPI_DETAIL_BYTES];
    fsdp_unit        **slots; /* who has each slot of `views` */
    fsdpi_bucket      *buckets;
    fsdpi_bucket      *filling;
    fsdpi_bucket      *issued_first; /* and those behind it: in order of issue */
    fsdp_hook         *hook;         /* NULL: none */
    float             *hook_room;    /* where it works on gradients of a GPU; NULL */
    size_t             n_issued;     /* buckets since the last step */
    size_t            *events;       /* the last ones, FSDPI_EVENTS_PER_UNIT for each unit: see shard/gather.c */
    size_t             n_events;
    size_t             expected; /* which of them and of those behind it come next; n_events: unknown */
    uint64_t order; /* a hash of the events since the last step, which says whether ranks know the same ones */
    struct fsdp_optimizer *optimizers;
    fsdp_loss_scaler      *loss_scaler;      /* NULL: none */
    fsdp_loss_scaler       loss_scaler_room; /* where it is, so that budgets count it */
    double                 slice_norms[];    /* of each rank's slices */
};

/** BYTES of a model on `size` ranks. */
static inline size_t fsdpi_model_bytes(int size)
{
    return sizeof(fsdp_model) + (size_t)size * sizeof(double);
}

/** Which slices this rank holds: from `first` on, `n` of them. */
typedef struct fsdpi_held {
    int first;
    int n;
} fsdpi_held;

static inline bool fsdpi_is_on_device(const fsdp_model *model)
{
    return model->options.placement != FSDP_ON_HOST;
}

static inline bool fsdpi_is_offloaded(const fsdp_model *model)
{
    return model->options.placement == FSDP_ON_DEVICE_OFFLOADED;
}

static inline bool fsdpi_is_hybrid(fsdp_strategy strategy)
{
    return strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2;
}

/** Whether parameters of that WIDTH are held as they are gathered, beside their masters. */
static inline bool fsdpi_has_low(const fsdp_model *model, size_t width)
{
    return width != sizeof(float) || fsdpi_is_offloaded(model);
}

/** Whether each unit's gathered view has a place of its own, in which it stays. */
static inline bool fsdpi_keeps_views(fsdp_strategy strategy)
{
    return strategy == FSDP_SHARD_GRAD_OP || strategy == FSDP_SHARD_OPTIM || strategy == FSDP_HYBRID_SHARD_ZERO2;
}

static inline fsdpi_held fsdpi_held_slices(const fsdp_model *model)
{
    const int n = model->ctx->size / model->shards->size;

    if (model->options.strategy == FSDP_NO_SHARD) {
        return (fsdpi_held){.first = 0, .n = model->ctx->size};
    }
    return (fsdpi_held){.first = model->shards->rank * n, .n = n};
}

/** ELEMENTS of a flat parameter that this rank holds. */
static inline size_t fsdpi_held_elements(const fsdpi_flat *flat)
{
    return (size_t)fsdpi_held_slices(flat->model).n * flat->layout.shard;
}

/** Where the `i`-th of the slices held begins in an array of the flat parameter. */
static inline float *fsdpi_slice_in(const fsdpi_flat *flat, float *array, int i)
{
    return array + (size_t)i * flat->layout.shard;
}

/** Element `at` of an array of a type. */
static inline unsigned char *fsdpi_element_of(unsigned char *array, size_t at, fsdp_dtype dtype)
{
    return array + at * fsdp_dtype_size(dtype);
}

/** The intervals of the `i`-th slice held, into flat->intervals. Returns how many there are. */
size_t fsdpi_held_intervals(fsdpi_flat *flat, int i);

/** Sets all that this rank holds to its initial values (shard/initial_values.c). */
void fsdpi_draw_initial_values(fsdp_model *model);

/* Flat parameters (shard/flat.c). */

/** The type in which a tensor is gathered or, ignored, held. */
fsdp_dtype fsdpi_gathered_dtype(const fsdp_model *model, const fsdpi_tensor *tensor);

/** A tensor of that name; NULL. */
fsdpi_tensor *fsdpi_find_tensor(const fsdp_model *model, const char *name);

/** Adds the flat parameters of a unit to the plan. FSDP_ERR_ARG, recorded, where ranks cannot divide that many elements. */
fsdp_status fsdpi_plan_unit(const fsdp_unit *unit, fsdpi_plan *plan);

/** BYTES of the structures of all flat parameters. */
size_t fsdpi_flats_bytes(const fsdpi_plan *plan);

/** Builds them in model->flats_memory. */
void fsdpi_flats_build(fsdp_model *model);

/** A hash of `n` elements at `elements`, which are number `begin` and on of what `stream` names (shard/hash.c). Hashes of
 * parts add up, modulo 2^64, to the hash of the whole. */
uint64_t fsdpi_hash_elements(uint64_t stream, size_t begin, const float *elements, size_t n);

/** FSDP_ERR_MEMORY, on all ranks, where a node has less than its ranks will take between them (shard/node_memory.c).
 * Collective. */
fsdp_status fsdpi_node_memory_check(fsdp_model *model);

/** BYTES on this rank's GPU of the contexts of a model (shard/budget.c). */
size_t fsdpi_contexts_device_bytes(const fsdp_model *model, fsdp_strategy strategy, int size);

/* Storage (shard/storage.c). */

/** Counts what a model needs under a strategy on `size` ranks. FSDP_ERR_ARG, recorded, where that cannot be. */
fsdp_status fsdpi_plan_make(const fsdp_model *model, fsdp_strategy strategy, int size, fsdpi_plan *plan);

/** Allocates what model->plan says, and lays the units out in it. Collective; the same status on all ranks. */
fsdp_status fsdpi_storage_open(fsdp_model *model);
void        fsdpi_storage_close(fsdp_model *model);

/* Groups (shard/groups.c). */

/** FSDP_ERR_ARG where the ranks cannot be divided as the options say. */
fsdp_status fsdpi_groups_check(fsdp_context *ctx, const fsdp_model_options *options);

/** Sets model->shards and model->replicas. Collective; the same status on all ranks. */
fsdp_status fsdpi_groups_open(fsdp_model *model);
void        fsdpi_groups_close(fsdp_model *model);

/** The slices that any rank holds. */
fsdpi_held fsdpi_slices_of_rank(const fsdp_model *model, int rank);

/** A rank that holds a slice, where gradients are sharded. */
int fsdpi_holder_of_slice(const fsdp_model *model, int slice);

/* Gathering (shard/gather.c). */

/** Makes a unit's gathered view ready, and issues those that come next. Collective. `function` outlives the model. */
fsdp_status fsdpi_gather(fsdp_unit *unit, fsdpi_pass pass, fsdp_status status);

/** Behind the end of a pass: the view stays where it will be wanted next, or its slot becomes free. */
void fsdpi_gather_release(fsdp_unit *unit);

/** Before the masters change: gathered views are of no use any more, and nobody reads what they are gathered from. */
void fsdpi_gather_drop(fsdp_model *model);

/** After that; `lows`: they have to be brought up to date. */
fsdp_status fsdpi_gather_refresh(fsdp_model *model, bool lows);

/** Completes what is under way; the first error counts. */
fsdp_status fsdpi_gather_settle(fsdp_model *model);

/** Forgets what is gathered and the order of the units: ranks may have done different things. No pass is open. */
void fsdpi_gather_forget(fsdp_model *model);

/** The public function that begins a pass, as ranks compare it. */
const char *fsdpi_begin_name(fsdpi_pass pass);

/* Quantised gathers (shard/quantized.c). */

/** BYTES of one slice, packed: a multiple of FSDPI_ALIGNMENT. */
size_t fsdpi_packed_slice_bytes(const fsdp_layout *layout);

/** Packs the slice that this rank holds, for the others. */
void fsdpi_quantize(fsdpi_flat *flat);

/** On a GPU: `count` values of it, from number `begin` on, a multiple of FSDPI_INT8_BLOCK, which are at `x`. */
void fsdpi_quantize_run(fsdpi_flat *flat, const float *x, size_t begin, size_t count);

/**
 * Gathers packed slices behind the view and unpacks them into it. Sets view->gathering, and on the host view->unpacking; on
 * a GPU they are unpacked by fsdpi_dequantize(), in the model's stream, when the gather has been waited for.
 */
fsdp_status fsdpi_gather_quantized(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view);
void        fsdpi_dequantize(fsdpi_view *view);

/* Reducing (shard/reduction.c). */

/** Provides a zeroed gradient view. */
fsdp_status fsdpi_gradient_open(fsdp_unit *unit);

/** Issues the reduction of the gradient view, or adds it up on this rank. A `status` that is not FSDP_OK goes to all ranks. */
fsdp_status fsdpi_gradient_close(fsdp_unit *unit, fsdp_status status);

/**
 * Completes all reductions, after which flat->gradient holds the sum. Collective where gradients wait for others. An error is
 * one of the step; FSDP_ERR_STATE for `function` where it has failed before.
 */
fsdp_status fsdpi_gradients_settle(fsdp_model *model, const char *function);

/** Waits for what has been issued and begins nothing: the gradients are of no use any more. Local. The first error counts. */
fsdp_status fsdpi_gradients_abandon(fsdp_model *model);

/** Forgets them. */
void fsdpi_gradients_forget(fsdp_model *model);

/* Its hook (shard/hooks/model_hook.c). */

/** What a hook sees of the part of a flat parameter that this rank holds, but for its values. The tensors lie in
 * flat->parts. */
fsdp_gradient fsdpi_gradient_for_hook(fsdpi_flat *flat);

/** Replaces this rank's part of a gradient by its mean over the ranks of `ctx`, as fsdpi_hook_allreduce() does with the model's
 * hook. */
fsdp_status fsdpi_hook_average_part(fsdpi_flat *flat, fsdp_context *ctx, const char *function, float *part);

/** Releases the host memory in which a hook works for a model on a GPU. */
void fsdpi_hook_room_close(fsdp_model *model);

/** FSDP_OK; or the error, recorded and printed, for a hook that cannot average the gradients of a model. */
fsdp_status fsdpi_hook_fits(const fsdp_model *model, const fsdp_hook *hook, const char *function);

/** BYTES of bookkeeping of one optimizer of a model (shard/optimizer.c). */
size_t fsdpi_optimizer_bookkeeping(const fsdpi_plan *plan);

/** BYTES through which an optimizer on a GPU works (shard/optimizer_device.c). */
size_t fsdpi_optimizer_staging(const fsdp_model *model, const fsdpi_plan *plan, fsdp_optimizer_kind kind,
                               fsdp_dtype moment_dtype);

/** Moments that an optimizer holds per parameter. */
size_t fsdpi_optimizer_states(fsdp_optimizer_kind kind);

/** The model that an optimizer was made for. */
const fsdp_model *fsdpi_optimizer_model(const struct fsdp_optimizer *optimizer);

static inline bool fsdpi_is_optimizer_kind(fsdp_optimizer_kind kind)
{
    return (int)kind >= 0 && (int)kind < FSDP_N_OPTIMIZER_KINDS;
}

/** BYTES of one moment; 0 for a type that moments cannot have. */
static inline size_t fsdpi_moment_bytes(fsdp_dtype moment_dtype)
{
    return moment_dtype == FSDP_F32 ? sizeof(float) : moment_dtype == FSDP_BF16 ? sizeof(uint16_t) : 0;
}

/** Releases the optimizers of a model. */
void fsdpi_optimizers_release(fsdp_model *model);

/** Whether there is any gradient since the last step (shard/grad_norm.c). */
bool fsdpi_has_gradients(const fsdp_model *model);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where none has, or as fsdpi_between_passes(). */
fsdp_status fsdpi_check_gradients(fsdp_model *model, const char *function);

/** Local. FSDP_ERR_STATE where passes without communication have left gradients that no pass has reduced since. */
fsdp_status fsdpi_check_none_local(fsdp_model *model, const char *function);

/** Multiplies all gradients that this rank holds. */
void fsdpi_scale_gradients(fsdp_model *model, double factor);

/** The element type of the narrowest range among those that parameters are gathered and gradients reduced in
 * (shard/loss_scaler.c). */
fsdp_dtype fsdpi_lowest_dtype(const fsdp_model *model);

/** Whether a tensor has elements of its own that are divided over the ranks. */
static inline bool fsdpi_is_divided(const fsdpi_tensor *tensor)
{
    return tensor->owner == tensor && (tensor->flags & FSDP_TENSOR_IGNORED) == 0;
}

/** Keeps the failure of adding a unit until commit, where the other ranks learn of it. Returns `status`. */
fsdp_status fsdpi_remember_failed_add(fsdp_model *model, fsdp_status status);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the model is not committed, the step has failed or a pass is
 * open; or the error of a reduction, with which the step fails. */
fsdp_status fsdpi_between_passes(fsdp_model *model, const char *function);

/** Ends all passes that are open (shard/unit.c). */
void fsdpi_passes_abandon(fsdp_model *model);

/* Failed steps (shard/failed_step.c). */

/** Notes the error of a pass, whose text is the context's last. Returns `status`. */
fsdp_status fsdpi_step_fail(fsdp_model *model, fsdp_status status);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the step has failed. */
fsdp_status fsdpi_step_check(const fsdp_model *model, const char *function);

/**
 * fsdpi_agree() for what is called between passes: not where the step has failed, which `status` says then, and first in the
 * groups, where ranks that are still in passes would else wait for this one.
 */
fsdp_status fsdpi_step_agree(fsdp_model *model, const char *function, const char *label, uint64_t salt,
                             fsdp_status status, bool forced);

/** Notes that a call between passes has returned an error. Returns `status`. */
fsdp_status fsdpi_step_tell(fsdp_model *model, fsdp_status status);

/** The agreement in the groups alone. */
fsdp_status fsdpi_groups_agree(fsdp_model *model, const char *function, bool forced);

/** Brings the streams of operations of all ranks to the same number. Collective. */
fsdp_status fsdpi_step_meet(fsdp_model *model);

/** Completes or gives up what is under way, before the model is destroyed. */
void fsdpi_step_end(fsdp_model *model);

#endif
