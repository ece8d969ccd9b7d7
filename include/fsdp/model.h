/**
 * @file
 * Fully sharded training state: a model is a list of units, a unit a list of tensors that are gathered and reduced
 * together, usually one layer.
 *
 * Each rank holds its shard of parameters, gradients and optimizer state. A unit's parameters are gathered between begin and
 * end of its forward pass and of its backward pass; its gradients are reduced over the ranks at the end of its backward pass.
 * The scheme is ZeRO-3 (Rajbhandari et al., 2020) and PyTorch FSDP (Zhao et al., 2023).
 *
 *     fsdp_model_create(ctx, &options, &model);
 *     fsdp_unit_add(model, "h.0", tensors, n_tensors, &unit);    (once per layer)
 *     fsdp_model_commit(model);
 *     fsdp_optimizer_create(model, &optimizer_options, &optimizer);    (fsdp/optimizer.h)
 *     for each step:
 *         fsdp_unit_begin_forward(unit);  w = fsdp_unit_param(unit, i);  ...  fsdp_unit_end_forward(unit);
 *         fsdp_unit_begin_backward(unit); g = fsdp_unit_grad(unit, i);   ...  fsdp_unit_end_backward(unit);
 *         fsdp_clip_grad_norm(model, 1.0, &norm);
 *         fsdp_optimizer_step(optimizer);
 *
 * Common to all functions that are collective: every rank calls them in the same order with the same arguments; a wrong
 * argument or state on one rank, or ranks that disagree, is the same error on every rank, with fsdp_last_error() naming
 * the value; nothing has changed and the model is still usable. FSDP_ERR_MPI and FSDP_ERR_TIMEOUT can come from
 * each of them; after these the context can only be finalized.
 *
 * Passes are the exception: ranks that do different things may be at different points when they notice. A pass that fails,
 * or whose reduction fails, ends the step: passes and everything after them then return FSDP_ERR_STATE at once, with the
 * first error in the text, until fsdp_model_zero_grad(). Each rank is told, but not all by the same call: some by a later
 * one, at the latest by fsdp_model_zero_grad() itself. So whatever has gone wrong in a step, do this on every rank: call
 * fsdp_model_zero_grad() once, use no other collective on the context before that, and repeat the step from its first pass.
 * Parameters, moments and step count are those from before it.
 *
 * On a GPU (fsdp_placement) all calls are the same, and views are device memory. What the model itself computes is put into
 * the stream that fsdp_stream_set() named for its context, where the program puts its kernels too: views are ready for what is
 * put into this stream after the begin of a pass, and must be read and written by what is in it at the end of the pass. Gathers
 * and reductions have streams of their own, ordered by events. The host waits for the GPU only to learn something: in clipping
 * by a norm, the loss scaler, hashes, import and export, checkpoints, commit and destroy. A program that names another stream
 * must make it wait for the previous one. Each call can then return FSDP_ERR_DEVICE: a call of the GPU's runtime has failed on
 * this rank. In a pass the step has failed with it; in fsdp_optimizer_step(), fsdp_tensor_import() and fsdp_checkpoint_load()
 * the parameters are undefined as well, and must be loaded. With the same kernels in the same order, results have the bits of a
 * model on the host. Gradient hooks compute on the host (fsdp/hook.h).
 */
#ifndef FSDP_MODEL_H
#define FSDP_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/layout.h"
#include "fsdp/mesh.h"
#include "fsdp/status.h"

/** Most dimensions of a tensor. */
#define FSDP_MAX_DIMS 8

typedef struct fsdp_model fsdp_model;
typedef struct fsdp_unit  fsdp_unit;

/** What is divided over the ranks: name, value, text. The names and their meaning are PyTorch's. */
#define FSDP_STRATEGY_LIST(X)                                                                                          \
    X(FSDP_FULL_SHARD, 0, "FULL_SHARD")       /* parameters, gradients and optimizer state (ZeRO-3) */                 \
    X(FSDP_NO_SHARD, 1, "NO_SHARD")           /* nothing: every rank holds all, gradients are all-reduced (DDP) */     \
    X(FSDP_SHARD_GRAD_OP, 2, "SHARD_GRAD_OP") /* like FULL_SHARD, gathered once per step (ZeRO-2) */                   \
    X(FSDP_SHARD_OPTIM, 3, "SHARD_OPTIM")     /* the same, gathered at once behind each step (ZeRO-1) */               \
    X(FSDP_HYBRID_SHARD, 4, "HYBRID_SHARD")   /* FULL_SHARD within groups, which are replicas of each other */         \
    X(FSDP_HYBRID_SHARD_ZERO2, 5, "HYBRID_SHARD_ZERO2") /* SHARD_GRAD_OP within groups */

#define FSDP_STRATEGY_ENUMERATOR(name, value, text) name = (value),
typedef enum fsdp_strategy { FSDP_STRATEGY_LIST(FSDP_STRATEGY_ENUMERATOR) } fsdp_strategy;
#undef FSDP_STRATEGY_ENUMERATOR
#define FSDP_N_STRATEGIES 6

/** The optimizers of fsdp/optimizer.h, with the state that a budget counts: see fsdp_model_budget(). */
typedef enum fsdp_optimizer_kind {
    FSDP_SGD          = 0, /**< no state */
    FSDP_SGD_MOMENTUM = 1, /**< one moment per parameter */
    FSDP_ADAMW        = 2, /**< two moments per parameter */
    FSDP_ADAM         = 3, /**< two moments per parameter */
    FSDP_LION         = 4, /**< one moment per parameter */
    FSDP_CUSTOM       = 5, /**< the program's own: as many states per parameter as it says */
    FSDP_MUON         = 6  /**< one moment per parameter, and room to work in for the largest matrix of the group */
} fsdp_optimizer_kind;
#define FSDP_N_OPTIMIZER_KINDS 7

/** Most states per parameter of an optimizer of the program's own. */
#define FSDP_MAX_STATES 8

/** How a tensor's initial values are drawn. */
typedef enum fsdp_fill {
    FSDP_FILL_CONSTANT = 0, /**< every element is `a` */
    FSDP_FILL_NORMAL   = 1, /**< mean `a`, standard deviation `b` */
    FSDP_FILL_UNIFORM  = 2, /**< from `a` up to `b` */
    FSDP_FILL_CALLBACK = 3  /**< the program computes them: see fsdp_fill_function */
} fsdp_fill;

/**
 * Computes initial values of a tensor with FSDP_FILL_CALLBACK. fsdp_model_commit() calls it, in the calling thread, once for each
 * run of elements that this rank holds, in no particular order; several ranks may hold the same elements. If it is a pure function
 * of the name and the index, the model begins with the same values for any number of ranks and every strategy. It must not call
 * the library.
 *
 * @param[in]  state   fsdp_tensor::fill_state
 * @param[in]  tensor  its name
 * @param[in]  first   index of the first element in the tensor, row-major; of a tensor that is divided over a mesh, in the whole one
 * @param[in]  count   ELEMENTS, at least 1
 * @param[out] values  `count` elements on the host
 * @param[in]  dtype   of `values`: the masters' type, FSDP_F32; FSDP_F64 where `param_dtype` is
 * @return FSDP_OK; else fsdp_model_commit() fails with this status on all ranks, and the text names tensor and elements.
 */
typedef fsdp_status (*fsdp_fill_function)(void *state, const char *tensor, size_t first, size_t count, void *values,
                                          fsdp_dtype dtype);

/** What a step does with parameters whose units have had no backward pass since the last one. */
typedef enum fsdp_unused {
    FSDP_UNUSED_ERROR = 0, /**< the step is an error, which names the unit: a forgotten pass is found */
    FSDP_UNUSED_KEEP  = 1, /**< they and their moments keep their values, as in PyTorch where `.grad` is None */
    FSDP_UNUSED_ZERO  = 2  /**< their gradients count as zero: moments and weight decay go on */
} fsdp_unused;
#define FSDP_N_UNUSED 3

/** How backward passes reduce gradients: see fsdp_model_set_sync(). */
typedef enum fsdp_sync {
    FSDP_SYNC_NONE  = 0, /**< not at all: they add up on each rank, unsharded */
    FSDP_SYNC_ALL   = 1, /**< over all ranks */
    FSDP_SYNC_GROUP = 2  /**< HYBRID_SHARD, HYBRID_SHARD_ZERO2: within the group only; elsewhere as FSDP_SYNC_ALL */
} fsdp_sync;

/** Where a model's memory is and what computes on it: this rank's processor, or the GPU of its context (fsdp/device.h). */
typedef enum fsdp_placement {
    FSDP_ON_HOST = 0, /**< all on the host */

    /** All on the GPU: gathered and gradient views, gradients, masters, optimizer state, ignored tensors. */
    FSDP_ON_DEVICE = 1,

    /**
     * Like FSDP_ON_DEVICE, but with masters and optimizer state in pinned host memory. A step copies them to the GPU and back
     * piece by piece (a quarter of FSDP_STAGING_BYTES of each array, two at a time), and computes at the same time. This
     * rank's part of the parameters stays on the GPU in the type in which it is gathered.
     */
    FSDP_ON_DEVICE_OFFLOADED = 2
} fsdp_placement;
#define FSDP_N_PLACEMENTS 3

/** Flags of a tensor. */
#define FSDP_TENSOR_NO_WEIGHT_DECAY 1u /**< exempt from weight decay (biases, norms) */
#define FSDP_TENSOR_FROZEN          2u /**< divided and gathered like others, but without gradient and optimizer state */
/** Held whole by every rank, neither gathered nor reduced nor changed by an optimizer: see fsdp_unit_buffer(). For running
 * statistics, tables and whatever else the program maintains itself. */
#define FSDP_TENSOR_IGNORED 4u
#define FSDP_TENSOR_KEEP_DTYPE                                                                                         \
    8u /**< gathered in its `dtype` even if that is FSDP_F32 and the model's is not (norms) */
/** Divided over the model's `tensor_axis`, along the dimension `tp_dim`. Without this flag each position there has all of it. */
#define FSDP_TENSOR_TP 16u

/**
 * One tensor of a unit. Initial values are a pure function of (model seed, name, element index): the same for every
 * number of ranks and every strategy.
 *
 * Tensors of a unit that are gathered in different types, and frozen and other ones, are divided over the ranks separately:
 * one collective for each kind in each pass.
 */
typedef struct fsdp_tensor {
    const char *name;                 /**< unique in the model, at most 255 bytes; copied */
    size_t      n_dims;               /**< 0 (a scalar) to FSDP_MAX_DIMS */
    size_t      shape[FSDP_MAX_DIMS]; /**< row-major, every extent at least 1 */

    /**
     * The type in which it is gathered. 0, where it has not been set, is the model's own: `param_dtype`, or `buffer_dtype` for an
     * ignored tensor, whatever the flags; so is FSDP_F64, which is the same number. FSDP_BF16 and FSDP_F16 stand for themselves;
     * FSDP_F32 stands for the model's own too, unless FSDP_TENSOR_KEEP_DTYPE is set. Masters have one type in the whole model: see
     * fsdp_model_options::param_dtype.
     */
    fsdp_dtype dtype;
    fsdp_fill  fill;
    double     a, b;  /**< see fsdp_fill */
    unsigned   flags; /**< FSDP_TENSOR_* or 0 */

    /**
     * NULL; or the name of a tensor of the same shape, in a unit added before or further up in this one, whose elements these
     * are: one owner with several names. Its gradient is the sum of what the passes of all units that name it add to their
     * views: add there, do not overwrite. `dtype`, `fill`, `a`, `b` and `flags` are the owner's.
     */
    const char *tied_to;

    fsdp_fill_function fill_values; /**< with FSDP_FILL_CALLBACK; else NULL. Not compared between ranks */
    void              *fill_state;  /**< handed to it; stays the caller's */

    /**
     * With FSDP_TENSOR_TP: the dimension, from 0, along which it is divided into equal parts over the model's `tensor_axis`; else 0.
     * `shape` is the whole tensor's. Each position holds shape[tp_dim] / tp of it, row-major: views, gradients, shards and
     * fsdp_tensor_export() are of this part. Where the model has no such axis, or one of size 1, the part is the whole.
     */
    uint32_t tp_dim;

    /**
     * 0 or 1; or of how many equal blocks that dimension consists, each divided by itself: 3 where the columns of one matrix are
     * those of queries, keys and values, so that each position has its heads' of all three, one block's behind the other's.
     */
    uint32_t tp_blocks;

    uint64_t reserved[5]; /**< zero: room for fields of later versions */
} fsdp_tensor;

typedef struct fsdp_model_options {
    size_t        size; /**< BYTES of this struct: FSDP_MODEL_OPTIONS_DEFAULT or fsdp_model_options_init() sets it */
    fsdp_strategy strategy;
    uint64_t      seed;            /**< of the initial values */
    size_t        memory_limit;    /**< BYTES per rank that the budget may not exceed; 0: no limit */
    fsdp_optimizer_kind optimizer; /**< the optimizer that the budget at commit assumes */
    int group_size; /**< HYBRID_SHARD: number of ranks that share one copy, a divisor of all; 0: those of a node, also in
                                   budgets for other numbers of ranks. Other strategies use it in budgets only. */

    /**
     * The type of gathered parameters: FSDP_F32, FSDP_BF16 or FSDP_F16, with masters and gradients in f32; or FSDP_F64, with
     * masters and gradients in f64, on the host. All that the library computes of these is then in f64: steps, clipping, scaling and
     * norms, whose squares are summed exactly. Set reduce_dtype and moment_dtype to FSDP_F64 too, unless they are to be
     * narrower. A model in f64 has no quantised parameters, gradient hooks, loss scaler or moments in 8 bits.
     */
    fsdp_dtype param_dtype;
    fsdp_dtype reduce_dtype;    /**< of gradient views and of their reduction: FSDP_F32, FSDP_BF16 or FSDP_F16; with a
                                  param_dtype of FSDP_F64, that too */
    int        local_gradients; /**< 1: room to accumulate without communication: see fsdp_model_set_sync() */
    fsdp_dtype moment_dtype;    /**< the type that budgets assume, and FSDP_U8 needs: see fsdp_optimizer_options */
    fsdp_dtype buffer_dtype;    /**< of ignored tensors: as reduce_dtype */

    /**
     * 1: FULL_SHARD gathers parameters as 8-bit integers with one f32 scale for each 256 of them, about a quarter of the bytes
     * of f32, and rounds them to `param_dtype` on arrival (Wang et al., "ZeRO++", 2023). Masters stay exact; tensors with
     * FSDP_TENSOR_KEEP_DTYPE or of a type other than FSDP_F32 are gathered as they are. A scale is the largest magnitude over
     * 127, in f32, at least the smallest normal number; a code is the value times 1 / scale, rounded to nearest even.
     */
    int quantized_params;

    /**
     * What the sum of all ranks' gradients is divided by; 0: the number of ranks, for the mean. Use another number, such as the
     * samples or tokens of a step over all ranks, if ranks have unequal shares of a batch and sum their losses. The mean is
     * taken first, in `reduce_dtype`, and multiplied in the masters' type by ranks / divisor.
     */
    double gradient_divisor;

    /** Where the model's memory is. For a GPU, the context must use one: see fsdp/device.h, also for the order of work. */
    fsdp_placement placement;

    /**
     * 1: fsdp_unit_param() returns the same address for a tensor of a unit in every pass, for frameworks that keep pointers to
     * parameters from forward to backward. Between passes an access to that address is a fault (SIGSEGV), and so is a write at
     * any time, where FULL_SHARD and HYBRID_SHARD share the memory between units: addresses for all of a model's gathered views
     * are reserved at commit, and memory is mapped into those of a unit at the beginning of its pass, which costs a system call
     * at each end, shown as "map" and "unmap" by FSDP_TRACE. Their gathered views then begin at whole pages, which budgets count.
     * A tensor has an address of its own in each unit that it is tied to. The other strategies keep what is gathered, and its
     * addresses, anyway: there nothing changes, and reading between passes is not found. On a GPU only these others have it.
     */
    int fixed_addresses;

    size_t n_states; /**< states per parameter that budgets assume of FSDP_CUSTOM: see fsdp_optimizer_options */

    fsdp_unused unused; /**< what a step does with parameters that no backward pass has used */

    /**
     * How many units' parameters may stay gathered from pass to pass of a step under FULL_SHARD and HYBRID_SHARD, in slots that
     * the budget counts; from the number of units on, each is gathered once per step. See fsdp_model_keep_gathered(). The other
     * strategies keep what is gathered anyway.
     */
    int kept_units;

    size_t recorded_passes; /**< room for a step's passes, forward and backward, for fsdp_model_replay(); 0: none */

    /**
     * 1: reshards to the node instead of to all ranks. What a pass under FULL_SHARD has gathered over all nodes, the ranks of each
     * node keep between them, each an equal part, and later passes of any unit take it from there until parameters change (by a
     * step, an import, a load, fsdp_model_shards_changed() or L-BFGS): backward passes, recomputations and further micro-batches.
     * Their gathers move no parameters between nodes, only the agreement of all ranks that every call has. This is the secondary
     * partition (hpZ) of ZeRO++ (Wang et al., 2023) and what MiCS (Zhang et al., 2022) has within its groups; masters, gradients
     * and moments stay divided over all ranks. No bit of a result changes. Each rank holds a view's BYTES over the ranks of its node
     * more, for all units at once, as FSDP_MEMORY_GATHERED: a budget for other numbers of ranks assumes nodes as large as the
     * context's largest, and the rest of the ranks on the last one. On a single node nothing is kept, since nothing is spared.
     * Units under SHARD_GRAD_OP, SHARD_OPTIM or NO_SHARD, and parameters below FSDP_SMALL_BYTES, are as without it. Models of another
     * strategy and on GPUs are FSDP_ERR_UNSUPPORTED.
     */
    size_t keep_on_node;

    /**
     * NULL; or the mesh (fsdp/mesh.h) that the model belongs to. It is then made on the context of the mesh's data axes, as
     * fsdp_mesh_context() opens it ("dp"), over which each part of it is sharded, and says which other axes there are: see
     * docs/mesh.md. The mesh stays the caller's, and has to be there as long as the model; names are read by fsdp_model_create()
     * only.
     */
    fsdp_mesh  *mesh;
    const char *tensor_axis; /**< NULL; or the axis over which tensors with FSDP_TENSOR_TP are divided: "tp" */
    const char *stage_axis;  /**< NULL; or the axis of pipeline stages, which have units of their own: "pp" */

    /**
     * NULL; or what is divided over which of the mesh's data axes, where the model's context is along several of them ("node+gpu"):
     * for each, in any order, its name, `=` and FULL_SHARD, SHARD_GRAD_OP, SHARD_OPTIM or NO_SHARD, with commas between them:
     * "node=NO_SHARD,gpu=FULL_SHARD". Each data axis longer than 1 has to be there; others may. The model's `strategy`, `group_size` and
     * `keep_on_node` follow from it and have to be left at their defaults; fsdp_model_strategy() says which strategy that is, for
     * budgets.
     *
     * An inner axis, which is behind an outer one in fsdp_mesh_create(), divides as much as that or more:
     * - the same for all axes: that strategy, over all ranks of the context;
     * - NO_SHARD for outer axes: HYBRID_SHARD where the others have FULL_SHARD, and HYBRID_SHARD_ZERO2 where they have
     *   SHARD_GRAD_OP. A group is of the ranks along these others, whichever nodes those are on;
     * - FULL_SHARD inside SHARD_GRAD_OP: gradients and optimizer state divided over both, parameters gathered over the outer axes
     *   once per step. That is FULL_SHARD with `keep_on_node`: ranks along the axes with FULL_SHARD have to be on one node, whose
     *   ranks, these and any others, divide what it keeps. With NO_SHARD outside of both it is the same within groups,
     *   HYBRID_SHARD.
     *
     * The same text on all ranks; only fsdp_model_create() reads it.
     */
    const char *axis_strategies;
} fsdp_model_options;

/** FULL_SHARD, seed 0, no limit, AdamW, one group per node, f32 throughout, on the host. Start from this: the defaults are
 * not all zero. */
#define FSDP_MODEL_OPTIONS_DEFAULT                                                                                     \
    {                                                                                                                  \
        sizeof(fsdp_model_options), FSDP_FULL_SHARD, 0, 0, FSDP_ADAMW, 0, FSDP_F32, FSDP_F32, 0, FSDP_F32, FSDP_F32,   \
            0, 0.0, FSDP_ON_HOST, 0, 0, FSDP_UNUSED_ERROR, 0, 0, 0, NULL, NULL, NULL, NULL                             \
    }

/**
 * Tensors with an optimizer of their own: see fsdp_model_add_group(). Begin with FSDP_MODEL_GROUP_DEFAULT. Not to be confused with
 * fsdp_optimizer_group, which gives tensors of one optimizer a rate of their own.
 */
typedef struct fsdp_model_group {
    size_t size; /**< BYTES of this struct: FSDP_MODEL_GROUP_DEFAULT or fsdp_model_group_init() sets it */

    /**
     * Where slices may end: FSDP_GRANULARITY_FLAT, anywhere; n, at multiples of n ELEMENTS of each tensor, so that no block of n
     * is divided between ranks; FSDP_GRANULARITY_TENSOR, between tensors only. With moments in FSDP_U8, FSDP_GRANULARITY_FLAT becomes
     * 256, and other numbers must be multiples of that.
     */
    size_t              granularity;
    fsdp_optimizer_kind optimizer;    /**< the optimizer that budgets assume for these tensors */
    fsdp_dtype          moment_dtype; /**< the type of its moments that budgets assume: see fsdp_optimizer_options */
    size_t              n_states;     /**< of FSDP_CUSTOM, states per parameter that budgets assume; else 0 */
} fsdp_model_group;

/** Slices that end anywhere, AdamW with moments in f32. */
#define FSDP_MODEL_GROUP_DEFAULT                                                                                       \
    {                                                                                                                  \
        sizeof(fsdp_model_group), FSDP_GRANULARITY_FLAT, FSDP_ADAMW, FSDP_F32, 0                                       \
    }

/** The BYTES that a model holds on one rank, known before anything is allocated: where whole tensors make ranks differ, on the
 * one that holds most. */
typedef struct fsdp_budget {
    size_t parameters;                 /**< number of parameters of the whole model, without padding (not bytes) */
    size_t bytes[FSDP_N_MEMORY_KINDS]; /**< by fsdp_memory_kind */
    size_t total;                      /**< the sum of `bytes` */
    size_t device;                     /**< of `total`, what is on the rank's GPU */
    size_t shared;                     /**< of `total`, what the ranks of a node share: gathered views on the host */
    size_t unsharded; /**< the same state held whole: masters and gradients in their type, moments, ignored tensors */
    size_t
        mean_total; /**< `total` of the mean rank: less where tensors are dealt whole, and some ranks hold more than others */
} fsdp_budget;

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_MODEL_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_model_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_model_options_init_size(fsdp_model_options *options, size_t size);
static inline void fsdp_model_options_init(fsdp_model_options *options)
{
    fsdp_model_options_init_size(options, sizeof *options);
}

/**
 * Sets all fields to FSDP_MODEL_GROUP_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_model_group_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_model_group_init_size(fsdp_model_group *options, size_t size);
static inline void fsdp_model_group_init(fsdp_model_group *options)
{
    fsdp_model_group_init_size(options, sizeof *options);
}

/** "FULL_SHARD" and so on; "unknown" for a value that is none. Local; the text is static. */
FSDP_API const char *fsdp_strategy_name(fsdp_strategy strategy);

/**
 * The strategy of a name as fsdp_strategy_name() gives it. Local.
 * @return FSDP_OK; FSDP_ERR_ARG if it is none (fsdp_last_error(NULL) lists those known), `strategy` untouched.
 */
FSDP_API fsdp_status fsdp_strategy_parse(const char *name, fsdp_strategy *strategy);

/**
 * Makes an empty model. Collective. Allocates bookkeeping only.
 *
 * With a `mesh` it is collective over the mesh, and opens the context of the axes that the model has, unless that is there.
 *
 * @param[in]  ctx      the ranks that the model is sharded over; with a `mesh`, one of its contexts
 * @param[in]  options  or NULL for FSDP_MODEL_OPTIONS_DEFAULT; the same on all ranks, with a `mesh` of all of that; copied
 * @param[out] model    the caller releases it with fsdp_model_destroy(), before fsdp_finalize()
 * @return FSDP_OK; FSDP_ERR_ARG: an option out of range, or options that are all zero; axes without a mesh, that it does not have, or
 *         that `ctx` has as well, a context that is none of the mesh's, or `axis_strategies` that do not name each data axis once;
 *         FSDP_ERR_UNSUPPORTED: an inner axis that divides less than an outer one, SHARD_OPTIM beside other strategies of axes, or
 *         FULL_SHARD inside SHARD_GRAD_OP where nodes cannot keep parameters; `quantized_params` or
 *         `keep_on_node` with another strategy than FULL_SHARD; `keep_on_node` on a GPU; a `param_dtype` of FSDP_F64 with
 *         `quantized_params`, moments in 8 bits or a placement on the GPU; or a placement on the GPU in a context that uses none
 *         (says why); FSDP_ERR_MISMATCH, FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_model_create(fsdp_context *ctx, const fsdp_model_options *options, fsdp_model **model);

/**
 * Adds a unit. Local: ranks are compared at fsdp_model_commit().
 *
 * @param[in]  name     unique in the model, at most 255 bytes; copied
 * @param[in]  tensors  `n_tensors` descriptions, at least one; copied
 * @param[out] unit     belongs to the model; valid until the model is destroyed
 * @return FSDP_OK; FSDP_ERR_ARG: a name that is missing, too long or taken, a tensor without elements or with too many,
 *         an unknown dtype, fill or flag, a tie to a tensor that is not there or has another shape, a dimension that the ranks of the
 *         tensor axis do not divide (names it, its size and theirs); FSDP_ERR_UNSUPPORTED: an
 *         element type other than f32, bf16 and f16; FSDP_ERR_STATE: the model is
 *         committed; FSDP_ERR_MEMORY. The model is unchanged, and its fsdp_model_commit() will fail with the same error on
 *         every rank, so that a rank that failed here cannot leave the others waiting.
 */
FSDP_API fsdp_status fsdp_unit_add(fsdp_model *model, const char *name, const fsdp_tensor *tensors, size_t n_tensors,
                                   fsdp_unit **unit);

/**
 * Gives one unit another strategy than the model's, before fsdp_model_commit(): SHARD_GRAD_OP or SHARD_OPTIM keep what is gathered
 * of one unit, NO_SHARD holds a unit whole. Results have the same bits. Local; but every rank must do the same, which
 * fsdp_model_commit() checks, and a failure here is its failure on every rank. The last call counts.
 *
 * A model with groups, HYBRID_SHARD or HYBRID_SHARD_ZERO2, has units of these two and NO_SHARD; other models have units of the
 * others and NO_SHARD. A tensor that is tied to another follows its owner's unit. Gradients of NO_SHARD units are all-reduced in
 * buckets, in a model with groups over the group first and then over the groups, by each rank. A gradient hook sees whole
 * gradients of these. Budgets under another strategy count a unit's own where it goes with that, else the other one.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: `unit` is NULL or `strategy` is none; FSDP_ERR_STATE: the model is committed;
 *         FSDP_ERR_UNSUPPORTED: a strategy that does not go with the model's, another than FULL_SHARD with `quantized_params`, or
 *         FULL_SHARD or HYBRID_SHARD with `fixed_addresses` on a GPU. The unit is then as it was.
 */
FSDP_API fsdp_status fsdp_unit_set_strategy(fsdp_unit *unit, fsdp_strategy strategy);

/**
 * Where a unit stands among those of all stages of a pipeline, before fsdp_model_commit(): files have tensors in this order, whatever
 * the number of stages. Units of equal places come in the order of stages, and in that in which they were added; without this
 * call all have 0. Stages that are interleaved need it, where a rank's second stage comes behind the first one of the next rank:
 * give the number of the layer, on one rank too. Local; the same on ranks that have the unit.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: `unit` is NULL; FSDP_ERR_STATE: the model is committed.
 */
FSDP_API fsdp_status fsdp_unit_set_place(fsdp_unit *unit, size_t place);

/**
 * Declares that the tensors whose names match a pattern have an optimizer of their own: the one that is made with this pattern in
 * fsdp_optimizer_options::group. Local, before fsdp_model_commit(), which compares ranks. Units may be added before or after.
 *
 * A tensor belongs to the first group added whose pattern its name matches, or to none: then the optimizer without a group updates
 * it. A tied tensor belongs to its owner's group; an ignored tensor to none. The tensors of a unit that belong to different groups
 * are divided over the ranks separately, as those of different types are: one collective more for each in each pass.
 *
 * @param[in] pattern  a shell pattern as of fnmatch(3), on the whole name: "h.*.weight". `*` and `?` match a period and a slash as
 *                     well. 1 to 255 bytes; copied
 * @param[in] group    copied
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a pattern that is empty, too long or taken, an unknown optimizer or moment type;
 *         FSDP_ERR_UNSUPPORTED: a granularity that this version lacks, moments in 8 bits with masters in f64; FSDP_ERR_STATE: the
 *         model is committed; FSDP_ERR_MEMORY. The model is unchanged, and its fsdp_model_commit() will fail with the same error on every rank.
 */
FSDP_API fsdp_status fsdp_model_add_group(fsdp_model *model, const char *pattern, const fsdp_model_group *group);

/**
 * The strategy of a model: that of its options, or the one that `axis_strategies` come to. Local; before or after commit.
 *
 * @param[out] strategy    as fsdp_model_budget() takes it
 * @param[out] group_size  how many ranks share one copy of what is divided: those of a group under a hybrid strategy, 1 under
 *                         NO_SHARD, else all of the context; or NULL
 * @return FSDP_OK; FSDP_ERR_ARG: `model` or `strategy` is NULL.
 */
FSDP_API fsdp_status fsdp_model_strategy(const fsdp_model *model, fsdp_strategy *strategy, int *group_size);

/**
 * Fixes the layout, checks that all ranks added the same units, checks the budget against the limit and against the memory
 * of each node, allocates, and draws the initial values. Collective. From here on units can be used, and none can be added.
 *
 * The ranks of a node together will take the sum of their budgets, counting `shared` once and leaving out the staging buffers,
 * which exist already. That must not exceed what the system calls available (MemAvailable), what is left of a control group's
 * limit, or FSDP_NODE_MEMORY instead of these two; nor may the part of it in shared memory exceed what is free at FSDP_SHM_DIR.
 * With GPUs the same applies to what remains on the host, and what the ranks that share a GPU will take of it must not exceed
 * what the runtime calls free there.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: no units, a budget above the limit (names both), a failed fsdp_unit_add() or
 *         fsdp_model_add_group(), or a group whose pattern matches no tensor, or only tensors of groups added before (names it);
 *         FSDP_ERR_STATE: committed before; FSDP_ERR_MISMATCH: ranks added different units or groups, or a pattern matches other
 *         tensors there, as it may in another locale; FSDP_ERR_MEMORY: a node or a
 *         GPU has less than its ranks need (names both), or an allocation failed. After an error nothing is allocated.
 */
FSDP_API fsdp_status fsdp_model_commit(fsdp_model *model);

/**
 * Releases a model with its units, optimizers and loss scaler; gradients that no step has used are lost. Collective if the
 * strategy has groups (their contexts are finalized), if the model is on a GPU (all ranks close each other's memory), or if a
 * step has failed since fsdp_model_zero_grad(); otherwise local. NULL does nothing.
 */
FSDP_API void fsdp_model_destroy(fsdp_model *model);

/**
 * What a model would hold on one rank under any strategy, for any number of ranks, with a loss scaler and an optimizer: one for
 * each group, as it was declared, and one for the tensors of no group, if there are any. fsdp_hook_budget() adds what a gradient
 * hook would hold. Local; before or after commit.
 *
 * @param[in] size       ranks, running or not; 0 stands for the size of the context
 * @param[in] optimizer  which optimizer's state to count for the tensors of no group, in the `moment_dtype` of the model's options
 * @return FSDP_OK; FSDP_ERR_ARG.
 */
FSDP_API fsdp_status fsdp_model_budget(const fsdp_model *model, fsdp_strategy strategy, int size,
                                       fsdp_optimizer_kind optimizer, fsdp_budget *budget);

/**
 * Gathers the unit's parameters: views are readable from here to fsdp_unit_end_forward(). Collective.
 * Views must not be written to (FSDP_VERIFY=full finds this at the end of the pass). With FSDP_PREFETCH above 0, what is
 * expected next is gathered as well, and a rank's wrong call may reach the others only in their next call that communicates.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: the model is not committed, the unit is open already, more
 *         units are open than `views_in_flight` allows, or the step has failed before; FSDP_ERR_MISMATCH: ranks begin
 *         different units. Except for NULL and an uncommitted model, the step has failed.
 */
FSDP_API fsdp_status fsdp_unit_begin_forward(fsdp_unit *unit);

/**
 * Releases the parameters: views are invalid from here on. Local; collective under FSDP_VERIFY=full.
 * @return FSDP_OK; FSDP_ERR_STATE: no forward pass of this unit is open; or, under FSDP_VERIFY=full, the view was written to,
 *         and the step has failed.
 */
FSDP_API fsdp_status fsdp_unit_end_forward(fsdp_unit *unit);

/**
 * Gathers the unit's parameters again and provides gradient views, which are zero. Collective. Errors as for
 * fsdp_unit_begin_forward().
 */
FSDP_API fsdp_status fsdp_unit_begin_backward(fsdp_unit *unit);

/**
 * Averages the gradient views over all ranks, adds the result to this rank's gradient shard and closes the views.
 * Collective. Gradients of several passes add up, in the order in which the passes end, until fsdp_optimizer_step() or
 * fsdp_model_zero_grad().
 * With FSDP_PREFETCH above 0 it returns while the reduction is under way; clipping, the step, or a later pass completes it
 * and returns its error.
 *
 * @return FSDP_OK; FSDP_ERR_STATE: no backward pass of this unit is open, a view was written to (FSDP_VERIFY=full), or the
 *         step has failed before; FSDP_ERR_MISMATCH: ranks end different units. After an error the step has failed.
 */
FSDP_API fsdp_status fsdp_unit_end_backward(fsdp_unit *unit);

/**
 * The gathered values of tensor `i`, in the order given to fsdp_unit_add(). Local.
 * @return the view, of the tensor's shape, row-major, in the type described at fsdp_tensor.dtype, valid until the pass ends;
 *         NULL with fsdp_last_error() if no pass of this unit is open or `i` is none of its tensors. Aligned to an element
 *         only: tensors follow each other without gaps. The node's ranks may share this memory: nobody may write to it.
 */
FSDP_API const void *fsdp_unit_param(fsdp_unit *unit, size_t i);

/**
 * The gradient view of tensor `i`: add to it or overwrite it. Local.
 * @return as for fsdp_unit_param(), in the model's `reduce_dtype`, within a backward pass; NULL for a tensor that is frozen or
 *         ignored.
 */
FSDP_API void *fsdp_unit_grad(fsdp_unit *unit, size_t i);

/**
 * This rank's own memory of the ignored tensor `i`, which may be read and written at any time. Local.
 * @return memory of the tensor's shape, row-major, in the type described at fsdp_tensor.dtype, valid until the model is destroyed;
 *         NULL with fsdp_last_error() for a tensor without FSDP_TENSOR_IGNORED, before fsdp_model_commit(), or if `i` is none.
 */
FSDP_API void *fsdp_unit_buffer(fsdp_unit *unit, size_t i);

/** What fsdp_unit_tensor() returns for a name that the unit does not have. */
#define FSDP_NO_TENSOR ((size_t)-1)

/**
 * The unit that was added under a name. Local, before and after commit; the number of steps grows with the logarithm of the
 * number of units.
 * @return NULL with fsdp_last_error(), which has the nearest name, if the model has none of that name or an argument is NULL.
 */
FSDP_API fsdp_unit *fsdp_model_unit(fsdp_model *model, const char *name);

/**
 * The index of a tensor in its unit, as fsdp_unit_param() and others take it. Local, before and after commit; the number of steps
 * grows with the logarithm of the number of tensors in the model.
 *
 * @param[in] name  as it was given to fsdp_unit_add(); or, where that begins with the unit's name and a period, without these:
 *                  "attn.weight" for "h.0.attn.weight" in the unit "h.0". A tensor of exactly this name comes first.
 * @return FSDP_NO_TENSOR with fsdp_last_error(), which has the nearest name, if the unit has none or an argument is NULL.
 *         fsdp_unit_param() and others refuse it.
 */
FSDP_API size_t fsdp_unit_tensor(const fsdp_unit *unit, const char *name);

/**
 * The shape of tensor `i` as this rank's views have it: of one that is divided over a mesh, that of its part. Local, before and after
 * commit.
 * @param[out] shape  room for FSDP_MAX_DIMS, of which the tensor's are set
 * @return how many dimensions it has; FSDP_NO_TENSOR with fsdp_last_error() if a pointer is NULL or `i` is none of the unit's tensors.
 */
FSDP_API size_t fsdp_unit_shape(const fsdp_unit *unit, size_t i, size_t *shape);

/** The name the unit was added under; "" if NULL. Local. */
FSDP_API const char *fsdp_unit_name(const fsdp_unit *unit);

/**
 * How far backward passes reduce gradients from here on: not at all (PyTorch's no_sync) or only within the group (PyTorch's
 * set_requires_all_reduce(False)) in all micro-batches of a step but the last, and over all ranks again in that one.
 *
 * With FSDP_SYNC_NONE gradients add up on each rank in f32, unsharded, and are rounded to `reduce_dtype` and reduced by the
 * unit's next pass that reduces. With FSDP_SYNC_GROUP they are reduced within the group, and the sums of passes add up in f32 in
 * this rank's part, without further memory; the unit's next pass with FSDP_SYNC_ALL adds its own, rounds to `reduce_dtype` once,
 * and reduces over the groups. So the bits are those of one reduction over the groups per step instead of one per pass. Once a
 * unit's gradients have been reduced over all ranks, a pass with FSDP_SYNC_GROUP is an error until the step, because the two
 * cannot share a place. A hook sees the sums of all these passes once, in the last.
 *
 * Local, but must be called alike on all ranks.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, or `sync` is none of fsdp_sync; FSDP_ERR_STATE: not committed, a pass is open, or
 *         FSDP_SYNC_NONE for a model that was made without `local_gradients`.
 */
FSDP_API fsdp_status fsdp_model_set_sync(fsdp_model *model, int sync);

/**
 * Whether gathered parameters stay between the passes of a step, in the room that `kept_units` has planned; they do from commit
 * on. A unit that has stayed is not gathered again by its next pass; a step, an import or a load drops them all. What a pass or
 * the prefetching of one needs always finds room. No bit of a result changes. Local, but must be called alike on all ranks.
 *
 * @param[in] on  0: what is gathered from here on is dropped with its pass, unless the next pass is expected to need it;
 *                what has stayed until now stays until it is used once more
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: not committed, a pass is open, or the model was made without
 *         `kept_units` and `on` is not 0.
 */
FSDP_API fsdp_status fsdp_model_keep_gathered(fsdp_model *model, int on);

/**
 * The rest of a step on a rank that has no more samples (PyTorch's Join): goes through the passes of the last step that had any,
 * from where this rank stands in the present one, with gradients of zero, so that the rank takes part in all that the others
 * call. It also repeats the calls of fsdp_model_set_sync() and fsdp_model_keep_gathered() among them. Clipping and the step
 * itself follow as on the other ranks. Each micro-batch of a rank without samples weighs nothing, so use a gradient divisor that
 * counts samples (fsdp/gradients.h); with the mean over ranks it would count as zero.
 *
 * What is repeated are the beginnings and ends of this rank's passes before the last successful step that had any (also forward
 * passes of an evaluation, unless fsdp_model_zero_grad() came behind them), on this rank. Where the other ranks' order is now
 * another one, that is FSDP_ERR_MISMATCH on all ranks, as always when ranks call different passes. A rank can also begin and end the
 * passes itself without computing anything; that needs no record.
 *
 * Collective in so far as the passes are. With FSDP_PREFETCH above 0 an error may reach other ranks only in their next call
 * that communicates.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: not committed; no step has been recorded, it had more passes than
 *         `recorded_passes` (names both), or this rank's passes since then were others; a pass is open; FSDP_ERR_MISMATCH and
 *         others as for the passes themselves. Except for NULL and an uncommitted model, the step has failed.
 */
FSDP_API fsdp_status fsdp_model_replay(fsdp_model *model);

/**
 * Clears the accumulated gradients, and ends open passes. Collective: it returns when every rank has called it, and until then
 * whatever other ranks call on this model returns FSDP_ERR_MISMATCH there. So after a failed step one call on each rank is
 * enough, wherever each one was: whatever it returns, all begin anew with the next pass. A step clears its gradients itself:
 * without errors this call is never needed.
 *
 * A gradient hook keeps its state, including that of a step that failed half way.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: not committed; FSDP_ERR_MISMATCH, or whatever other error
 *         another rank was told: the step had failed and no call has told this rank before. The gradients are cleared anyway.
 */
FSDP_API fsdp_status fsdp_model_zero_grad(fsdp_model *model);

/**
 * Scales all gradients so that their 2-norm is at most `max_norm`: by max_norm / (norm + 1e-6) where that is below 1, as
 * PyTorch does. Collective: one reduction of 176 bytes.
 * The squares are summed exactly, and the sum and its square root are rounded to f64 once each. So the norm of given gradients
 * has the same bits for any strategy, number of ranks and nodes, layout, instruction set and GPU. It does not overflow: it is
 * infinite or NaN only where a gradient is; NaN where any is. The norm of a model whose tensors are all frozen is 0.
 *
 * @param[in]  max_norm  above 0; INFINITY only computes the norm
 * @param[out] norm      the norm before scaling; or NULL. If it is not finite, gradients are left as they are.
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: not committed, a pass is open, the step has failed, or no gradients since
 *         the last step; FSDP_ERR_MISMATCH: `max_norm` differs between ranks.
 */
FSDP_API fsdp_status fsdp_clip_grad_norm(fsdp_model *model, double max_norm, double *norm);

/**
 * The same for the infinity norm, the largest magnitude of all gradients; PyTorch's norm_type=inf. Collective: one reduction
 * of 8 bytes. The norm is exact. It is NaN if a gradient is NaN, otherwise infinite if one is; gradients are then left as they are.
 * Parameters and errors as for fsdp_clip_grad_norm().
 */
FSDP_API fsdp_status fsdp_clip_grad_norm_inf(fsdp_model *model, double max_norm, double *norm);

/**
 * Limits each element of all gradients to -limit .. limit, like PyTorch's clip_grad_value_. Collective. Infinite elements
 * become the limit; NaN stays NaN.
 *
 * @param[in] limit  0 or more, not NaN; rounded to f32
 * @return as for fsdp_clip_grad_norm().
 */
FSDP_API fsdp_status fsdp_clip_grad_value(fsdp_model *model, double limit);

/**
 * A hash of all parameters, independent of the number of ranks and of the strategy: the same if and only if every element of
 * every tensor has the same bits (except by chance, 2^-64). Ignored tensors, which may differ between ranks, are left out.
 * Collective.
 *
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: not committed, or the step has failed.
 */
FSDP_API fsdp_status fsdp_model_hash(fsdp_model *model, uint64_t *hash);

FSDP_EXTERN_C_END

#endif
