/**
 * @file
 * Groups of tensors, and their rates.
 */
#ifndef FSDPI_OPTIMIZER_GROUPS_H
#define FSDPI_OPTIMIZER_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/optimizer/optimizer_state.h"

/** The rate, in the present step, of a group counted from 1; 0: of tensors without a group. */
double fsdpi_group_lr(const fsdp_optimizer *optimizer, size_t group);

/** The weight decay of a group, or without one, for tensors that do not forbid it. */
double fsdpi_group_weight_decay(const fsdp_optimizer *optimizer, size_t group);

/** All rates of the present step, as many as there is room for. Returns a hash of those of groups. */
uint64_t fsdpi_describe_rates(const fsdp_optimizer *optimizer, char *text, size_t size);

/** Whether `value` is one that rates and decays may have. */
bool fsdpi_is_rate(double value);

#endif
