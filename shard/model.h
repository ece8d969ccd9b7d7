/**
 * @file
 * What a model and its units consist of.
 *
 * Under every strategy a unit is thought of as divided into one slice per rank, as fsdp_layout says. FULL_SHARD holds the
 * slice of this rank; NO_SHARD holds all of them, one after the other. What walks over the slices it holds, in order of
 * rank, therefore computes bitwise the same under both.
 */
#ifndef FSDPI_MODEL_H
#define FSDPI_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/layout.h"
#include "fsdp/model.h"
#include "lib/context.h"

enum { FSDPI_NAME_BYTES = 256 };

typedef struct fsdpi_tensor {
    const char *name;
    fsdp_fill   fill;
    double      a, b;
    unsigned    flags;
    size_t      offset; /* of its first element in the unit */
} fsdpi_tensor;

typedef enum fsdpi_pass { FSDPI_CLOSED, FSDPI_FORWARD, FSDPI_BACKWARD } fsdpi_pass;

struct fsdp_unit {
    fsdp_unit     *next;
    fsdp_model    *model;
    const char    *name;
    size_t         n_tensors;
    fsdpi_tensor  *tensors;
    size_t        *counts;    /* ELEMENTS of each tensor */
    fsdp_interval *intervals; /* room for one slice's */
    size_t         elements;
    size_t         bytes; /* of this structure with all that it points to */
    uint64_t       fingerprint;
    fsdp_layout    layout; /* from commit on, as the rest */
    float         *master;
    float         *gradient;
    bool           has_gradient; /* since the last step */
    fsdpi_pass     pass;
    float         *view; /* while a pass is open */
    float         *gradient_view;
    uint64_t       view_hash; /* FSDP_VERIFY=full */
};

/** Views of equal size that units take in turn. */
typedef struct fsdpi_pool {
    fsdp_memory_kind kind;
    size_t           view_elements;
    size_t           n;
    float           *memory;
    bool            *taken;
} fsdpi_pool;

struct fsdp_model {
    fsdp_context          *ctx;
    fsdpi_owned            owned;
    fsdp_model_options     options;
    fsdp_unit             *first, *last;
    size_t                 n_units;
    fsdp_status            add_status; /* of the first fsdp_unit_add() that failed */
    char                   add_error[FSDPI_DETAIL_BYTES];
    bool                   committed;
    size_t                 open; /* units in a pass */
    fsdpi_pool             gathered, gradients;
    struct fsdp_optimizer *optimizers;
};

/** Which slices this rank holds: from `first` on, `n` of them. */
typedef struct fsdpi_held {
    int first;
    int n;
} fsdpi_held;

static inline fsdpi_held fsdpi_held_slices(const fsdp_model *model)
{
    const bool whole = model->options.strategy == FSDP_NO_SHARD;

    return (fsdpi_held){.first = whole ? 0 : model->ctx->rank, .n = whole ? model->ctx->size : 1};
}

/** ELEMENTS of a unit that one rank holds under a strategy. */
static inline size_t fsdpi_held_elements(const fsdp_layout *layout, fsdp_strategy strategy)
{
    return strategy == FSDP_NO_SHARD ? layout->padded : layout->shard;
}

/** Where the `i`-th of the slices held begins in an array of the unit. */
static inline float *fsdpi_slice_in(const fsdp_unit *unit, float *array, int i)
{
    return array + (size_t)i * unit->layout.shard;
}

/** The intervals of the `i`-th slice held, into unit->intervals. Returns how many there are. */
size_t fsdpi_held_intervals(fsdp_unit *unit, int i);

/** Sets the master shard of a unit to its initial values (shard/initial_values.c). */
void fsdpi_draw_initial_values(fsdp_unit *unit);

/** A hash of `n` elements at `elements`, which are number `begin` and on of what `stream` names (shard/hash.c). Hashes of
 * parts add up, modulo 2^64, to the hash of the whole. */
uint64_t fsdpi_hash_elements(uint64_t stream, size_t begin, const float *elements, size_t n);

/** Views (shard/views.c). Taking needs no check where the caller has made sure that one is free. */
fsdp_status fsdpi_pool_open(fsdp_context *ctx, fsdpi_pool *pool, fsdp_memory_kind kind, size_t n, size_t view_elements);
void        fsdpi_pool_close(fsdp_context *ctx, fsdpi_pool *pool);
float      *fsdpi_pool_take(fsdpi_pool *pool);
void        fsdpi_pool_give_back(fsdpi_pool *pool, const float *view);
size_t      fsdpi_pool_free_views(const fsdpi_pool *pool);

/** How many views of each kind a model needs: views_in_flight, or its number of units where that is less. */
size_t fsdpi_views_needed(const fsdp_model *model);

/** BYTES of bookkeeping of one optimizer of a model (shard/optimizer.c). */
size_t fsdpi_optimizer_bookkeeping(const fsdp_model *model);

/** Arrays of f32 that an optimizer holds per parameter. */
size_t fsdpi_optimizer_states(fsdp_optimizer_kind kind);

/** Releases the optimizers of a model. */
void fsdpi_optimizers_release(fsdp_model *model);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the model is not committed or a pass is open. */
fsdp_status fsdpi_between_passes(fsdp_model *model, const char *function);

#endif
