/**
 * @file
 * Groups of tensors that have an optimizer of their own: see fsdp_model_add_group().
 */
#ifndef FSDPI_TENSOR_GROUPS_H
#define FSDPI_TENSOR_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/state/model.h"

struct fsdpi_tensor_group {
    fsdpi_tensor_group *next;  /* added behind it */
    size_t              bytes; /* of this structure with its pattern */
    fsdp_model_group    own;
    char                pattern[];
};

/** The first group that a name matches; NULL. */
fsdpi_tensor_group *fsdpi_group_of_name(const fsdp_model *model, const char *name);

/** Of a pattern, as it was given; NULL where there is none. */
const fsdpi_tensor_group *fsdpi_group_of_pattern(const fsdp_model *model, const char *pattern);

/** Of a group; NULL: of the tensors of none. */
size_t fsdpi_granularity(const fsdp_model *model, const fsdpi_tensor_group *group);

/** For commit: FSDP_ERR_ARG, for an agreement to print, where a group has no tensors. */
fsdp_status fsdpi_tensor_groups_check(const fsdp_model *model);

/** What ranks must agree on: a text, and a number for what it is too short for and for which tensors belong to the group. */
void     fsdpi_tensor_group_describe(const fsdpi_tensor_group *group, char *text, size_t size);
uint64_t fsdpi_tensor_group_fingerprint(const fsdp_model *model, const fsdpi_tensor_group *group);

/** Whether it is dealt to a rank as a whole. A frozen tensor belongs to no group, and is divided as others are. */
bool fsdpi_is_dealt(const fsdpi_tensor *tensor);

/** BYTES of all moments of `held` elements of one flat parameter: each is an allocation of its own. */
size_t fsdpi_states_held(const fsdp_model_group *group, size_t held);

size_t fsdpi_count_tensor_groups(const fsdp_model *model);

/** BYTES of all of them. */
size_t fsdpi_tensor_groups_bytes(const fsdp_model *model);

void fsdpi_tensor_groups_release(fsdp_model *model);

#endif
