/**
 * @file
 * Optimizers of the program's own: SGD, with momentum or without, and AdamW, by the function that FSDP_CUSTOM calls. On the host it
 * is the reference's arithmetic, and what is tested is what the library hands over; on a GPU it is the built-in kernels.
 */
#ifndef FSDP_TESTS_RANDOM_OWN_OPTIMIZER_H
#define FSDP_TESTS_RANDOM_OWN_OPTIMIZER_H

#include "fsdp/fsdp.h"

/** What checkpoints call the states. */
#define OWN_FIRST  "own-first"
#define OWN_SECOND "own-second"

typedef struct own_optimizer {
    fsdp_context          *ctx;
    fsdp_optimizer_options coefficients;
} own_optimizer;

/** How many states a built-in kind has. */
size_t own_states(fsdp_optimizer_kind kind);

/** What makes an optimizer of FSDP_CUSTOM do what `like` says; `own` stays where it is as long as that. */
void own_optimizer_init(own_optimizer *own, fsdp_context *ctx, const fsdp_optimizer_options *like,
                        fsdp_optimizer_options *options);

#endif
