/**
 * @file
 * What the engine calls of a gradient hook, and what a method of compression consists of.
 */
#ifndef FSDPI_HOOK_H
#define FSDPI_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/collectives.h"
#include "fsdp/hook.h"
#include "lib/context/context.h"

/* ---- for the engine ---------------------------------------------------------------------------------------------- */

/** BYTES that a hook holds for a unit once it is prepared, as fsdpi_alloc() counts them. */
typedef struct fsdpi_hook_need {
    size_t bookkeeping; /* FSDP_MEMORY_BOOKKEEPING */
    size_t state;       /* FSDP_MEMORY_GRADIENTS */
    size_t scratch;     /* FSDP_MEMORY_STAGING, of which units share the largest */
} fsdpi_hook_need;

/** Of a gradient's `unit`, `count`, `tensors` and `ranks`; its values are not looked at. Local. NULL needs nothing. */
fsdpi_hook_need fsdpi_hook_needs(const fsdp_hook *hook, const fsdp_gradient *gradient);

/** BYTES of bookkeeping that a hook holds from the beginning. */
size_t fsdpi_hook_bookkeeping(void);

/**
 * Allocates what fsdpi_hook_needs() says, where that is not there yet. Local, so that a caller can agree on several at once.
 * @param[in] ctx  over which the gradient will be averaged; may be another one than the hook was made in
 * @return FSDP_OK; FSDP_ERR_MEMORY; FSDP_ERR_STATE: a unit of that name with other tensors or ranks is there
 */
fsdp_status fsdpi_hook_prepare(fsdp_hook *hook, fsdp_context *ctx, const fsdp_gradient *gradient);

/** Forgets what is kept of earlier gradients: parameters will be loaded. What is saved stays where it is. Local. NULL does nothing. */
void fsdpi_hook_forget(fsdp_hook *hook);

/** Whether what is kept is part of checkpoints, with what tells it from that of other options. Local. */
bool        fsdpi_hook_is_saved(const fsdp_hook *hook);
const char *fsdpi_hook_saved_name(const fsdp_hook *hook, const fsdp_gradient *gradient, char *text, size_t size);

/** ELEMENTS that are kept for a gradient of `count` and `ranks`, whatever its tensors are; 0: none. For a hook that is saved. */
size_t fsdpi_hook_saved_elements(const fsdp_hook *hook, const fsdp_gradient *gradient);

/** Where they are, of a unit that is prepared: as long as the hook is there. NULL: there are none. */
float *fsdpi_hook_saved_state(const fsdp_hook *hook, const char *unit);

/** Multiplies that: from now on gradients are larger by this factor. Local. NULL does nothing. */
void fsdpi_hook_rescale(fsdp_hook *hook, double factor);

/**
 * Replaces a gradient by its mean over the ranks of `ctx`, in place. Collective. Blocking. Prepares what is not prepared.
 *
 * @param[in] hook     NULL: plain f32
 * @param[in] purpose  as for fsdpi_allreduce(); with a status that is not FSDP_OK, `gradient` is not looked at
 * @return as fsdpi_allreduce(), and as fsdpi_hook_prepare() and the callbacks. On failure the values are undefined, and the
 *         hook's state is what it was.
 */
fsdp_status fsdpi_hook_allreduce(fsdp_hook *hook, fsdp_context *ctx, const fsdpi_purpose *purpose,
                                 const fsdp_gradient *gradient);

/* ---- for the methods --------------------------------------------------------------------------------------------- */

/** One reduction under way. `purpose->status` is FSDP_OK. */
typedef struct fsdpi_reduction {
    fsdp_hook           *hook;
    fsdp_context        *ctx;
    const fsdpi_purpose *purpose;
    const fsdp_gradient *gradient;
    float               *state;
    void                *scratch;
} fsdpi_reduction;

/** A method of averaging. The functions that only get a gradient depend on its layout alone, and so are equal on all ranks. */
typedef struct fsdpi_hook_method {
    /** Whether this gradient goes through the method; else it is averaged in f32, and nothing is held for it. */
    bool (*applies)(const fsdp_hook *hook, const fsdp_gradient *gradient);
    /** ELEMENTS of f32 that are kept for it between reductions; zero at first. NULL: none. */
    size_t (*state_elements)(const fsdp_hook *hook, const fsdp_gradient *gradient);
    /** BYTES needed during a reduction. NULL: none. */
    size_t (*scratch_bytes)(const fsdp_hook *hook, const fsdp_gradient *gradient);
    /** Fills in what is not zero at first. NULL: all is. */
    void (*start)(const fsdp_hook *hook, const fsdp_gradient *gradient, float *state);
    /** Writes what the saved state is called, with all that it depends on. NULL: what is kept is not saved. */
    void (*name_saved)(const fsdp_hook *hook, const fsdp_gradient *gradient, char *text, size_t size);
    /** Averages. Changes its state only after the last step that can fail. */
    fsdp_status (*reduce)(const fsdpi_reduction *reduction);
} fsdpi_hook_method;

extern const fsdpi_hook_method fsdpi_half_method, fsdpi_int8_method, fsdpi_power_sgd_method, fsdpi_custom_method;

struct fsdpi_hook_unit;

struct fsdp_hook {
    fsdp_context            *ctx; /* that its memory is counted in */
    fsdpi_owned              owned;
    const fsdpi_hook_method *method;
    uint64_t                 fingerprint; /* of what it is and of its options */
    union {
        fsdp_dtype             half;
        fsdp_int8_options      int8;
        fsdp_power_sgd_options power_sgd;
        fsdp_hook_callbacks    custom;
    } options;
    struct fsdpi_hook_unit *units;
    void                   *scratch;
    size_t                  scratch_bytes;
    uint64_t                sent, uncompressed;
};

/**
 * The common end of the functions that make hooks.
 * @param[in] plan    its method and options; copied
 * @param[in] label   the options in words, which ranks must agree on
 * @param[in] status  what this rank has found wrong with them
 */
fsdp_status fsdpi_hook_make(fsdp_context *ctx, const char *function, const fsdp_hook *plan, const char *label,
                            fsdp_status status, fsdp_hook **hook);

/** One allreduce of a reduction, FSDP_AVG, counted. `in` may be FSDP_IN_PLACE. */
fsdp_status fsdpi_hook_average(const fsdpi_reduction *reduction, const void *in, void *out, size_t count,
                               fsdp_dtype dtype);

/** Counts a block of `bytes` that this rank sends to each other one. */
void fsdpi_hook_count_blocks(const fsdpi_reduction *reduction, size_t bytes);

#endif
