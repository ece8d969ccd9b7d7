#include <string.h>

#include "kernels/kernels.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "shard/tensor_parallel/arguments.h"
#include "shard/tensor_parallel/words_device.h"

/* A call of either direction: the table, or its gradient, and rows of words. */
typedef struct embedding {
    fsdp_context    *tp;
    const char      *function;
    fsdpi_gpu_lookup lookup;
    fsdpi_array      table, rows;
    bool             on_device, words_there;
} embedding;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static fsdp_status check_null(const embedding *e, const fsdpi_array *array)
{
    if (array->bytes > 0 && array->memory == NULL) {
        return fsdpi_fail_together(e->tp, FSDP_ERR_ARG, "%s: the %s is NULL; pass memory for it", e->function,
                                   array->what);
    }
    return FSDP_OK;
}

static fsdp_status check_arrays(embedding *e)
{
    FSDP_TRY(check_null(e, &e->table));
    FSDP_TRY(check_null(e, &e->rows));
    FSDP_TRY(fsdpi_place_check(e->tp, e->function, &e->table, &e->rows, &e->on_device));
    FSDP_TRY(
        fsdpi_words_place_check(e->tp, e->function, e->lookup.words, e->lookup.rows, e->on_device, &e->words_there));
    return fsdpi_words_check(e->tp, e->function, e->lookup.words, e->lookup.rows, e->lookup.vocabulary, false,
                             e->words_there);
}

/* All that both directions check, and what follows from it. */
static fsdp_status examine(embedding *e, const fsdp_tp_activations *activations)
{
    fsdp_tp_activations all;

    if (activations != NULL) { /* where rows are outside does not matter */
        all         = *activations;
        all.outside = FSDP_TP_ALL_ROWS;
        activations = &all;
    }
    FSDP_TRY(fsdpi_activations_check(e->tp, e->function, activations));
    if (activations == NULL) {
        return FSDP_ERR_ARG; /* which has been said */
    }
    const fsdpi_words mine  = fsdpi_words_of(e->tp, e->lookup.vocabulary);
    const size_t      width = activations->width * fsdp_dtype_size(activations->dtype);
    e->lookup.rows          = activations->rows;
    e->lookup.width         = activations->width;
    e->lookup.dtype         = activations->dtype;
    e->lookup.begin         = mine.begin;
    e->lookup.count         = mine.count;
    e->rows.bytes           = activations->rows * width;
    e->table.bytes          = mine.count > 0 && activations->rows > 0 ? width : 0;
    return check_arrays(e);
}

/* Prints what is wrong: nothing here meets other ranks. */
static fsdp_status check(embedding *e, const fsdp_tp_activations *activations)
{
    if (e->tp == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_mesh_context", e->function);
    }
    const fsdp_status status = examine(e, activations);
    fsdpi_error_print(e->tp, status);
    return status;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static void embed(const fsdpi_gpu_lookup *l, const void *table, void *out)
{
    const size_t row = l->width * fsdp_dtype_size(l->dtype);

    for (size_t i = 0; i < l->rows; i++) {
        const size_t word = (size_t)l->words[i] - l->begin; /* of others it wraps around */
        char        *to   = (char *)out + i * row;

        if (word < l->count) {
            memcpy(to, (const char *)table + word * row, row);
        } else {
            memset(to, 0, row);
        }
    }
}

fsdp_status fsdp_tp_embed(fsdp_context *tp, const fsdp_tp_activations *activations, const int32_t *words,
                          size_t vocabulary, const void *table, void *out)
{
    embedding e = {.tp       = tp,
                   .function = "fsdp_tp_embed",
                   .lookup   = {.words = words, .vocabulary = vocabulary},
                   .table    = {.what = "table", .memory = table},
                   .rows     = {.what = "output", .memory = out}};

    FSDP_TRY(check(&e, activations));
    if (e.rows.bytes == 0) {
        return FSDP_OK;
    }
    if (e.on_device) {
        return fsdpi_embed_on_device(tp, &e.lookup, e.words_there, table, out);
    }
    embed(&e.lookup, table, out);
    return FSDP_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

static void add_rows(const fsdp_context *tp, const fsdpi_gpu_lookup *l, const void *d_out, void *d_table)
{
    const size_t width = l->width;

    for (size_t i = 0; i < l->rows; i++) {
        const size_t word = (size_t)l->words[i] - l->begin;

        if (word < l->count && l->dtype == FSDP_F32) {
            tp->kernels->accumulate((float *)d_table + word * width, false, (const float *)d_out + i * width, FSDP_F32,
                                    1.0, width);
        } else if (word < l->count) {
            fsdpi_accumulate_f64((double *)d_table + word * width, false, (const double *)d_out + i * width, 1.0,
                                 width);
        }
    }
}

fsdp_status fsdp_tp_embed_backward(fsdp_context *tp, const fsdp_tp_activations *activations, const int32_t *words,
                                   size_t vocabulary, const void *d_out, void *d_table)
{
    embedding e = {.tp       = tp,
                   .function = "fsdp_tp_embed_backward",
                   .lookup   = {.words = words, .vocabulary = vocabulary},
                   .table    = {.what = "table's gradient", .memory = d_table},
                   .rows     = {.what = "rows' gradient", .memory = d_out}};

    FSDP_TRY(check(&e, activations));
    if (e.lookup.dtype != FSDP_F32 && e.lookup.dtype != FSDP_F64) {
        return fsdpi_fail(tp, FSDP_ERR_UNSUPPORTED,
                          "fsdp_tp_embed_backward: gradients in %s; add them up in f32 or f64",
                          fsdp_dtype_name(e.lookup.dtype));
    }
    if (e.rows.bytes == 0 || e.table.bytes == 0) {
        return FSDP_OK;
    }
    if (e.on_device) {
        return fsdpi_embed_backward_on_device(tp, &e.lookup, e.words_there, d_out, d_table);
    }
    add_rows(tp, &e.lookup, d_out, d_table);
    return FSDP_OK;
}
