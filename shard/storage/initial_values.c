#include "shard/storage/initial_values.h"

#include <stdbool.h>
#include <string.h>

#include "fsdp/random.h"
#include "lib/base/error.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/state/tp_part.h"
#include "shard/storage/compute.h"

static double initial_value(const fsdpi_tensor *tensor, uint64_t seed, uint64_t stream, size_t index)
{
    switch (tensor->fill) {
    case FSDP_FILL_CONSTANT:
    case FSDP_FILL_CALLBACK:
        break;
    case FSDP_FILL_NORMAL:
        return tensor->a + tensor->b * fsdp_random_normal(seed, stream, index);
    case FSDP_FILL_UNIFORM:
        return tensor->a + (tensor->b - tensor->a) * fsdp_random_uniform(seed, stream, index);
    }
    return tensor->a;
}

static fsdp_status call_back(const fsdp_model *model, const fsdpi_tensor *tensor, size_t begin, size_t count,
                             void *values)
{
    const fsdp_status status =
        tensor->fill_values(tensor->fill_state, tensor->name, begin, count, values, model->master_dtype);

    if (status == FSDP_OK) {
        return FSDP_OK;
    }
    const bool is_code = strcmp(fsdp_status_name(status), "FSDP_UNKNOWN") != 0;
    return fsdpi_fail_together(
        model->ctx, is_code ? status : FSDP_ERR_ARG,
        "fsdp_model_commit: fill_values() returned %d for %zu elements from %zu on of tensor '%s'", (int)status, count,
        begin, tensor->name);
}

/* Elements of the whole tensor that follow each other. */
static fsdp_status draw_row(const fsdp_model *model, const fsdpi_tensor *tensor, size_t begin, size_t count,
                            void *values)
{
    if (tensor->fill == FSDP_FILL_CALLBACK) {
        return call_back(model, tensor, begin, count, values);
    }
    const uint64_t stream = fsdp_random_stream(tensor->name);

    for (size_t i = 0; i < count; i++) {
        const double value = initial_value(tensor, model->options.seed, stream, begin + i);

        if (model->master_dtype == FSDP_F64) {
            ((double *)values)[i] = value;
        } else {
            ((float *)values)[i] = (float)value;
        }
    }
    return FSDP_OK;
}

/* Elements of this position's part. */
static fsdp_status draw_run(const fsdp_model *model, const fsdpi_tensor *tensor, size_t begin, size_t count,
                            void *values)
{
    for (size_t at = 0; at < count;) {
        const fsdpi_tp_run row = fsdpi_tp_run_at(tensor, begin + at, count - at);

        FSDP_TRY(draw_row(model, tensor, row.whole, row.count, fsdpi_at(model, values, at)));
        at += row.count;
    }
    return FSDP_OK;
}

enum { PIECE = 4096 }; /* ELEMENTS that are drawn beside where they belong at a time */

/* To memory of the model that may be a GPU's, and of another type than masters: piece by piece. */
static fsdp_status draw_apart(fsdp_model *model, const fsdpi_tensor *tensor, size_t begin, size_t count,
                              unsigned char *to, fsdp_dtype dtype)
{
    double piece[PIECE]; /* of the masters' type */

    for (size_t at = 0; at < count; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;

        FSDP_TRY(draw_run(model, tensor, begin + at, n, piece));
        fsdpi_compute_write(model, fsdpi_element_of(to, at, dtype), dtype, piece, model->master_dtype, n);
    }
    return FSDP_OK;
}

static fsdp_status draw_slice(fsdpi_flat *flat, int i)
{
    const size_t n     = fsdpi_held_intervals(flat, i);
    void        *slice = fsdpi_slice_in(flat, flat->master, i);

    for (size_t k = 0; k < n; k++) {
        const fsdp_interval *run    = &flat->intervals[k];
        const fsdpi_tensor  *tensor = flat->tensors[run->tensor];
        void                *values = fsdpi_at(flat->model, slice, run->shard_begin);

        if (fsdpi_is_on_device(flat->model)) {
            FSDP_TRY(draw_apart(flat->model, tensor, run->tensor_begin, run->count, values, flat->model->master_dtype));
        } else {
            FSDP_TRY(draw_run(flat->model, tensor, run->tensor_begin, run->count, values));
        }
    }
    return FSDP_OK;
}

static fsdp_status draw_all(fsdp_model *model)
{
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        for (int i = 0; i < fsdpi_held_slices(flat).n; i++) {
            FSDP_TRY(draw_slice(flat, i));
        }
    }
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            if (unit->tensors[i].whole != NULL && unit->tensors[i].owner == &unit->tensors[i]) {
                const fsdpi_tensor *tensor = &unit->tensors[i];

                FSDP_TRY(
                    draw_apart(model, tensor, 0, tensor->count, tensor->whole, fsdpi_gathered_dtype(model, tensor)));
            }
        }
    }
    return FSDP_OK;
}

/* On all ranks or on none. */
static bool has_callbacks(const fsdp_model *model)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            if (unit->tensors[i].fill_values != NULL) {
                return true;
            }
        }
    }
    return false;
}

fsdp_status fsdpi_draw_initial_values(fsdp_model *model)
{
    const fsdp_status status = draw_all(model);

    return has_callbacks(model) ? fsdpi_agree(model->ctx, "fsdp_model_commit", "initial values", 0, status, true)
                                : status;
}
