/**
 * @file
 * Training of the small model once more, in one process that knows every rank's gradient, averages them in the order of the
 * library, and applies the update as its paper writes it, element by element, in plain C.
 */
#ifndef FSDP_TESTS_SERIAL_TRAINING_H
#define FSDP_TESTS_SERIAL_TRAINING_H

#include "tests/shard/serial_optimizer.h"

/** Says which ranks are on which node; before the others. Collective. */
void note_nodes(const fsdp_context *ctx);

/** Adds the mean over all ranks of a pass's gradients to s->g. */
void serial_pass(serial_model *s, const fsdp_context *ctx, int pass);

/** Steps of `accumulate` passes each. Fails unless all parameters are equal to the bit after every one. Collective. */
void train_and_compare(fsdp_strategy strategy, const fsdp_optimizer_options *o, int steps, int accumulate);

#endif
