/**
 * @file
 * The optimizers once more, as their papers write them: element by element, in plain C, on all of the small model.
 */
#ifndef FSDP_TESTS_SERIAL_OPTIMIZER_H
#define FSDP_TESTS_SERIAL_OPTIMIZER_H

#include <stddef.h>

#include "fsdp/optimizer.h"
#include "tests/shard/small_model.h"

typedef struct serial_model {
    float  w[MOST_ELEMENTS], g[MOST_ELEMENTS], first[MOST_ELEMENTS], second[MOST_ELEMENTS];
    int    fresh; /* no gradient since the last step */
    size_t steps;
} serial_model;

/** What one tensor is updated with. */
typedef struct serial_rates {
    double lr, weight_decay;
} serial_rates;

/** s->g becomes exact_gradient() of that pass. */
void serial_take_exact_gradient(serial_model *s, int pass);

/** One step with s->g, with the rates of each tensor: NULL for those of the options. No decay where the tensor's flags forbid
 * it, whatever the rates say. */
void serial_step(serial_model *s, const fsdp_optimizer_options *o, const serial_rates rates[N_TENSORS]);

/** Fails unless the model's parameters are s->w to the bit. Collective. */
void assert_equal_parameters(const serial_model *s, small_model *m, int step);

#endif
