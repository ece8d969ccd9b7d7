/**
 * @file
 * Training loops of the small model in which ranks and units do not all have the same work, under every strategy, group size and
 * depth of prefetching. Gradients are short numbers, whose sums are exact in f32: so what a mean over the ranks must be does not
 * depend on who adds up what first.
 */
#ifndef FSDP_TESTS_LOOP_H
#define FSDP_TESTS_LOOP_H

#include <stdbool.h>

#include "fsdp/fsdp.h"
#include "tests/shard/small_model.h"

/** Units by their bits. */
enum { UNIT_A = 1, UNIT_B = 2, UNIT_C = 4, ALL_UNITS = 7 };

typedef struct loop_case {
    fsdp_context *ctx;
    fsdp_strategy strategy;
    int           group_size, prefetch;
} loop_case;

/** Group setup and teardown: opens the contexts of all cases. */
int loop_open_contexts(void **state);
int loop_close_contexts(void **state);

/** The context without prefetching. */
fsdp_context *loop_context(void);

/** Calls `check` for every case; for those of one strategy with groups and replicas, where the number of ranks has such. */
void loop_for_all(void (*check)(const loop_case *c));
void loop_for_groups(void (*check)(const loop_case *c));

/** Fills in the case's strategy and group, and makes and commits the model. */
void loop_open(small_model *m, const loop_case *c, fsdp_model_options options);

/** An optimizer with the defaults of its kind, except that plain SGD has a rate of 1. */
fsdp_optimizer *loop_optimizer(small_model *m, fsdp_optimizer_kind kind);

/** The gradient that a rank computes, a multiple of 1/64 below 8 in magnitude. */
float loop_gradient(int rank, int pass, size_t tensor, size_t i);

/** The forward and the backward pass of some units, in order; up to the first error. `computes`: adds this rank's gradient. */
fsdp_status loop_forward(small_model *m, unsigned units);
fsdp_status loop_backward(small_model *m, unsigned units, int pass, bool computes);
/** Both, which have to succeed. */
void loop_pass(small_model *m, unsigned units, int pass, bool computes);

/** Adds the mean over the first `ranks` of `size` ranks (sums over them by `size`) of a pass to `g`, in f32; for the tensors of
 * some units. `fresh`: there was nothing in it. */
void loop_add_mean(float *g, unsigned units, int pass, int ranks, int size, bool fresh);

/** Calls the body for element `k` of all, the `i`-th of tensor `t`, of unit `u`. */
/* NOLINTBEGIN(bugprone-macro-parentheses): they are names of variables */
#define LOOP_ELEMENTS(u, t, i, k)                                                                                      \
    for (size_t u = 0, k = 0; u < N_UNITS; u++)                                                                        \
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++)                                                 \
            for (size_t i = 0; i < tensor_elements(t); i++, k++)
/* NOLINTEND(bugprone-macro-parentheses) */

/** Fails unless the parameters are these, to the bit. Collective. */
void loop_expect_parameters(small_model *m, const float *expected, const char *what);

/** Fails unless all ranks have this status, or any other error but FSDP_OK where it is FSDP_ERR_MISMATCH. */
void loop_expect_on_all(const small_model *m, fsdp_status expected, fsdp_status status, const char *what);

#endif
