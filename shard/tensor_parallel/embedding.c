#include <string.h>

#include "kernels/kernels.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "shard/tensor_parallel/arguments.h"

/* All that both directions check, printed: nothing here meets other ranks. */
static fsdp_status check(fsdp_context *tp, const char *function, const fsdp_tp_activations *activations,
                         const int32_t *words, size_t vocabulary, const void *in, const void *out)
{
    fsdp_tp_activations all;

    if (tp == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_mesh_context", function);
    }
    if (activations != NULL) { /* where rows are outside does not matter */
        all         = *activations;
        all.outside = FSDP_TP_ALL_ROWS;
        activations = &all;
    }
    fsdp_status status = fsdpi_activations_check(tp, function, activations);
    if (status == FSDP_OK && activations != NULL) {
        status = fsdpi_words_check(tp, function, words, activations->rows, vocabulary, false);
    }
    if (status == FSDP_OK && activations != NULL && fsdpi_words_of(tp, vocabulary).count > 0) {
        status = fsdpi_buffers_check(tp, function, in, out,
                                     activations->rows * activations->width * fsdp_dtype_size(activations->dtype));
    }
    fsdpi_error_print(tp, status);
    return status;
}

fsdp_status fsdp_tp_embed(fsdp_context *tp, const fsdp_tp_activations *activations, const int32_t *words,
                          size_t vocabulary, const void *table, void *out)
{
    FSDP_TRY(check(tp, "fsdp_tp_embed", activations, words, vocabulary, table, out));

    const fsdpi_words mine = fsdpi_words_of(tp, vocabulary);
    const size_t      row  = activations->width * fsdp_dtype_size(activations->dtype);

    for (size_t i = 0; i < activations->rows && row > 0; i++) {
        const size_t word = (size_t)words[i] - mine.begin; /* of others it wraps around */
        char        *to   = (char *)out + i * row;

        if (word < mine.count) {
            memcpy(to, (const char *)table + word * row, row);
        } else {
            memset(to, 0, row);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdp_tp_embed_backward(fsdp_context *tp, const fsdp_tp_activations *activations, const int32_t *words,
                                   size_t vocabulary, const void *d_out, void *d_table)
{
    FSDP_TRY(check(tp, "fsdp_tp_embed_backward", activations, words, vocabulary, d_out, d_table));
    if (activations->dtype != FSDP_F32 && activations->dtype != FSDP_F64) {
        return fsdpi_fail(tp, FSDP_ERR_UNSUPPORTED,
                          "fsdp_tp_embed_backward: gradients in %s; add them up in f32 or f64",
                          fsdp_dtype_name(activations->dtype));
    }
    const fsdpi_words mine  = fsdpi_words_of(tp, vocabulary);
    const size_t      width = activations->width;

    for (size_t i = 0; i < activations->rows; i++) {
        const size_t word = (size_t)words[i] - mine.begin;

        if (word < mine.count && activations->dtype == FSDP_F32) {
            tp->kernels->accumulate((float *)d_table + word * width, false, (const float *)d_out + i * width, FSDP_F32,
                                    1.0, width);
        } else if (word < mine.count) {
            fsdpi_accumulate_f64((double *)d_table + word * width, false, (const double *)d_out + i * width, 1.0,
                                 width);
        }
    }
    return FSDP_OK;
}
