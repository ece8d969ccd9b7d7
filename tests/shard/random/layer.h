/**
 * @file
 * What the program computes in its passes, of which neither the reference nor the library knows anything: a chain of units
 * whose activation is one number per rank. Gradients depend on the rank, the pass, the parameters and the activation, and
 * have random bits to their end, so that no two orders of a sum agree by chance.
 */
#ifndef FSDP_TESTS_RANDOM_LAYER_H
#define FSDP_TESTS_RANDOM_LAYER_H

#include "tests/shard/random/random_model.h"

/** One rank's activations. */
typedef struct activations {
    double x;                /* behind the last unit */
    double into[MOST_UNITS]; /* each unit, as its last forward pass had it */
} activations;

void forget_activations(activations *a, uint64_t seed, int rank, size_t passes);

/** What a tensor adds to the activation of its unit. */
double tensor_output(const random_model *m, size_t t, const float *w);

/** A unit's forward pass, with what its tensors have added. */
void forward_unit(activations *a, size_t unit, double output);

/** The gradient of tensor `t` in backward pass number `pass` of rank `rank`. */
float gradient_of(const random_model *m, const activations *a, size_t t, size_t i, float w, int rank, size_t pass,
                  double scale);

/** Whether the gradient of a tensor is added when its pass begins; or when it ends. */
bool is_early(size_t t, size_t pass);

/** What an ignored tensor becomes on a rank, and what is imported. */
float next_buffer_value(uint64_t seed, size_t t, size_t i, float old, int rank);
float imported_value(uint64_t seed, size_t t, size_t i, size_t passes);

/** What the callbacks of the custom hook make of an element of the gradient of `rank`, and of a mean. */
float before_hook(float x, int rank);
float after_hook(float x);

#endif
