/**
 * @file
 * Turning a flat list of tensors into units: by size, or by name.
 *
 * Groups are runs of consecutive tensors, given by the indices of their first tensors: group g has those from first[g] up to,
 * but not including, first[g + 1], the last group all from its first on; first[0] is 0. The grouping functions are pure:
 * local, without a model, and with the same result on every rank that passes the same arguments.
 *
 *     size_t first[N_TENSORS], n;
 *     fsdp_group_by_name(tensors, N_TENSORS, "h.*.", first, &n);
 *     fsdp_units_add_grouped(model, tensors, N_TENSORS, first, n, units);
 */
#ifndef FSDP_GROUPING_H
#define FSDP_GROUPING_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

FSDP_EXTERN_C_BEGIN

/**
 * Collects consecutive tensors until they have `min_elements` ELEMENTS or more, then begins the next group, like PyTorch's
 * size_based_auto_wrap_policy with min_num_params. A smaller rest at the end is a group of its own. Local.
 *
 * @param[in]  tensors       `n` descriptions; only shapes are used
 * @param[in]  min_elements  0 or 1 makes each tensor a group
 * @param[out] first         room for `n` numbers: at most one group per tensor
 * @param[out] n_groups      how many were written; 0 for no tensors
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a tensor of more than FSDP_MAX_DIMS dimensions (fsdp_last_error(NULL)).
 */
FSDP_API fsdp_status fsdp_group_by_size(const fsdp_tensor *tensors, size_t n, size_t min_elements, size_t *first,
                                        size_t *n_groups);

/**
 * Collects consecutive tensors whose names begin with the same instance of a pattern. Local.
 *
 * In a pattern each '*' stands for one component of a name: all bytes, at least one, up to the next '.' or the end of the
 * name; '*' is followed by '.' or the end of the pattern. All other bytes stand for themselves. A name matches if it begins
 * with what the pattern stands for, and that beginning is its instance. Consecutive tensors with the same instance are a
 * group; so are consecutive tensors that do not match. Of wte, wpe, h.0.a, h.0.b, h.1.a, h.10.a, ln_f the
 * pattern "h.*." makes (wte, wpe), (h.0.a, h.0.b), (h.1.a), (h.10.a), (ln_f).
 *
 * @param[in]  tensors   `n` descriptions; only names are used
 * @param[in]  pattern   not empty
 * @param[out] first     room for `n` numbers
 * @param[out] n_groups  how many were written; 0 for no tensors
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a tensor without a name, an invalid pattern (fsdp_last_error(NULL)).
 */
FSDP_API fsdp_status fsdp_group_by_name(const fsdp_tensor *tensors, size_t n, const char *pattern, size_t *first,
                                        size_t *n_groups);

/**
 * Adds a unit per group, as fsdp_unit_add() would. Local.
 *
 * A unit is named after the leading components that the names of its tensors have in common: "h.0" for h.0.a.w and h.0.b.w.
 * If there are none, or if a tensor of another group has that name or begins with it and a '.', the unit is named after its
 * first tensor. So no two of these units have the same name.
 *
 * @param[in]  first     `n_groups` increasing numbers below `n`, the first of them 0
 * @param[out] units     `n_groups` units, in the order of the groups; untouched from the first group that failed on
 * @return as fsdp_unit_add(), and FSDP_ERR_ARG for invalid groups. Units before the one that failed have been added;
 *         fsdp_model_commit() will fail with the same error on every rank.
 */
FSDP_API fsdp_status fsdp_units_add_grouped(fsdp_model *model, const fsdp_tensor *tensors, size_t n,
                                            const size_t *first, size_t n_groups, fsdp_unit **units);

FSDP_EXTERN_C_END

#endif
