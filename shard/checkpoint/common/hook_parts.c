#include "shard/checkpoint/common/hook_parts.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/state/groups.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"

#define MARK ".int8_error."

enum { SUFFIX_BYTES = 64 };

static bool is_saved(const fsdpi_flat *flat)
{
    return fsdpi_hook_is_saved(flat->model->hook) && !flat->frozen && !fsdpi_has_plane(flat->model);
}

size_t fsdpi_hook_parts_most(const fsdp_model *model, size_t *name_bytes)
{
    size_t n = 0;

    *name_bytes = 0;
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (is_saved(flat)) {
            *name_bytes += strlen(flat->name) + 1 + SUFFIX_BYTES;
            n++;
        }
    }
    return n;
}

bool fsdpi_is_hook_part_name(const char *name)
{
    return strstr(name, MARK) != NULL;
}

/* ---- whose elements are which ---------------------------------------------------------------------------------------- */

/* ELEMENTS of the gradient that a rank averages with others: what it holds. */
static size_t gradient_count(const fsdpi_flat *flat, int rank)
{
    if (fsdpi_is_whole(flat)) {
        return fsdpi_held_elements(flat);
    }
    const fsdpi_held held = fsdpi_slices_of_rank(flat->model, rank);

    return fsdpi_slice_begin(flat, held.first + held.n) - fsdpi_slice_begin(flat, held.first);
}

/* Of the ranks below one all elements; the number of ranks: of all. */
static size_t elements_below(const fsdpi_flat *flat, int rank)
{
    const fsdp_model *model = flat->model;
    fsdp_gradient     one   = {.ranks = fsdpi_gradient_for_hook((fsdpi_flat *)(uintptr_t)flat).ranks};
    size_t            all   = 0;

    for (int r = 0; r < rank; r++) {
        one.count = gradient_count(flat, r);
        all += fsdpi_hook_saved_elements(model->hook, &one);
    }
    return all;
}

void fsdpi_hook_part_range(const fsdpi_flat *flat, int rank, size_t *begin, size_t *count)
{
    *begin = elements_below(flat, rank);
    *count = elements_below(flat, rank + 1) - *begin;
}

size_t fsdpi_hook_part_elements(const fsdpi_flat *flat)
{
    return is_saved(flat) ? elements_below(flat, flat->model->ctx->size) : 0;
}

/* ---- one of them ----------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_hook_part_prepare(fsdpi_flat *flat, fsdpi_problem *problem)
{
    const fsdp_model   *model    = flat->model;
    const fsdp_gradient gradient = fsdpi_gradient_for_hook(flat);
    const fsdp_status   status   = fsdpi_hook_prepare(model->hook, model->ctx, &gradient);

    return status == FSDP_OK
               ? FSDP_OK
               : fsdpi_problem_set(problem, status, "unit '%.200s': no memory for what its hook keeps", flat->name);
}

size_t fsdpi_hook_part_name(fsdpi_flat *flat, char *name)
{
    const fsdp_gradient gradient = fsdpi_gradient_for_hook(flat);
    const size_t        room     = strlen(flat->name) + 1 + SUFFIX_BYTES;
    char                suffix[SUFFIX_BYTES];

    (void)snprintf(name, room, "%s.%s", flat->name,
                   fsdpi_hook_saved_name(flat->model->hook, &gradient, suffix, sizeof suffix));
    return room;
}
