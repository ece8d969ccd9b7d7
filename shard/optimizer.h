/**
 * @file
 * What an optimizer holds, and its groups of tensors.
 */
#ifndef FSDPI_OPTIMIZER_H
#define FSDPI_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/optimizer.h"
#include "shard/model.h"

enum { FSDPI_MOST_STATES = 2 };

/** Of one flat parameter. */
typedef struct fsdpi_flat_state {
    /** As long as its master shard, in the optimizer's moment_dtype. Adam, AdamW: first and second moment; Lion: its moment;
     * SGD: the momentum buffer. */
    void   *moments[FSDPI_MOST_STATES];
    size_t *group; /* of each tensor: its place in `groups`, counted from 1; 0: none */
} fsdpi_flat_state;

/** Patterns are told apart by their hash: kept as text, their length would be no part of a budget known beforehand. */
typedef struct fsdpi_group {
    uint64_t             pattern;
    fsdp_optimizer_group own;
} fsdpi_group;

struct fsdp_optimizer {
    fsdp_optimizer        *next;
    fsdp_model            *model;
    fsdp_optimizer_options options;
    size_t                 steps;
    size_t                 n_groups;
    fsdpi_group           *groups;  /* room for as many as the model has tensors: each has one at least */
    fsdpi_flat_state       flats[]; /* in order of the model's */
};

/** The rate, in the present step, of a group counted from 1; 0: of tensors without a group. */
double fsdpi_group_lr(const fsdp_optimizer *optimizer, size_t group);

/** The weight decay of a group, or without one, for tensors that do not forbid it. */
double fsdpi_group_weight_decay(const fsdp_optimizer *optimizer, size_t group);

/** All rates of the present step, as many as there is room for. Returns a hash of those of groups. */
uint64_t fsdpi_describe_rates(const fsdp_optimizer *optimizer, char *text, size_t size);

/** Whether `value` is one that rates and decays may have. */
bool fsdpi_is_rate(double value);

#endif
