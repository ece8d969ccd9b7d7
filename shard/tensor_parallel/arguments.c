#include "shard/tensor_parallel/arguments.h"

#include "collectives/arguments/memory.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

fsdpi_words fsdpi_words_of(const fsdp_context *tp, size_t vocabulary)
{
    const size_t size = (size_t)tp->size, rank = (size_t)tp->rank;
    const size_t least = vocabulary / size, longer = vocabulary % size;

    return (fsdpi_words){.begin = rank * least + (rank < longer ? rank : longer),
                         .count = least + (rank < longer ? 1 : 0)};
}

fsdp_status fsdp_tp_part(const fsdp_context *tp, size_t n, size_t *begin, size_t *count)
{
    if (tp == NULL || begin == NULL || count == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_tp_part: `%s` is NULL",
                          tp == NULL      ? "tp"
                          : begin == NULL ? "begin"
                                          : "count");
    }
    const fsdpi_words part = fsdpi_words_of(tp, n);
    *begin                 = part.begin;
    *count                 = part.count;
    return FSDP_OK;
}

static bool is_float(fsdp_dtype dtype)
{
    return dtype == FSDP_F32 || dtype == FSDP_F64 || dtype == FSDP_BF16 || dtype == FSDP_F16;
}

fsdp_status fsdpi_activations_check(fsdp_context *tp, const char *function, const fsdp_tp_activations *activations)
{
    size_t bytes;

    if (activations == NULL) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: the activations are NULL; say what they are", function);
    }
    if (!is_float(activations->dtype)) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: the type of the activations is %s; use f32, f64, bf16 or f16",
                                   function, fsdp_dtype_name(activations->dtype));
    }
    if (activations->outside != FSDP_TP_ALL_ROWS && activations->outside != FSDP_TP_OWN_ROWS) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: `outside` is %d; use FSDP_TP_ALL_ROWS or FSDP_TP_OWN_ROWS",
                                   function, (int)activations->outside);
    }
    if (activations->outside == FSDP_TP_OWN_ROWS && activations->rows % (size_t)tp->size != 0) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG,
                                   "%s: %zu rows cannot be divided over %d ranks; pad them to a multiple, or use "
                                   "FSDP_TP_ALL_ROWS",
                                   function, activations->rows, tp->size);
    }
    if (!fsdpi_multiply(activations->rows, activations->width, &bytes) ||
        !fsdpi_multiply(bytes, fsdp_dtype_size(activations->dtype), &bytes) || bytes > PTRDIFF_MAX) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG,
                                   "%s: %zu rows of %zu elements are more bytes than memory can address", function,
                                   activations->rows, activations->width);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_buffers_check(fsdp_context *tp, const char *function, const void *in, const void *out, size_t bytes)
{
    if (bytes > 0 && (in == NULL || out == NULL)) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: the %s is NULL; pass memory for %zu bytes", function,
                                   in == NULL ? "input" : "output", bytes);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_place_check(fsdp_context *tp, const char *function, const fsdpi_array *a, const fsdpi_array *b,
                              bool *on_device)
{
    bool first, second;

    *on_device = false;
    FSDP_TRY(fsdpi_is_on_device_of(tp, function, a->memory, a->bytes, &first));
    FSDP_TRY(fsdpi_is_on_device_of(tp, function, b->memory, b->bytes, &second));
    if (a->bytes > 0 && b->bytes > 0 && first != second) {
        const fsdpi_array *there = first ? a : b, *here = first ? b : a;

        return fsdpi_fail_together(tp, FSDP_ERR_ARG,
                                   "%s: the %s (%p) is on the GPU, and the %s (%p) is not; pass two of one kind",
                                   function, there->what, there->memory, here->what, here->memory);
    }
    *on_device = first || second;
    return FSDP_OK;
}

fsdp_status fsdpi_words_place_check(fsdp_context *tp, const char *function, const int32_t *words, size_t n,
                                    bool on_device, bool *there)
{
    *there = false;
    FSDP_TRY(fsdpi_is_on_device_of(tp, function, words, n * sizeof *words, there));
    if (*there && !on_device) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG,
                                   "%s: the words (%p) are on the GPU, and the rest of the call is not; pass words in "
                                   "host memory",
                                   function, (const void *)words);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_words_check(fsdp_context *tp, const char *function, const int32_t *words, size_t n, size_t vocabulary,
                              bool some, bool there)
{
    if (vocabulary == 0) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: a vocabulary of 0 words; there must be at least 1", function);
    }
    if (n > 0 && words == NULL) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: the words are NULL; pass %zu", function, n);
    }
    for (size_t i = 0; i < n && !there; i++) {
        if (!(some && words[i] == FSDP_TP_NO_TARGET) && (words[i] < 0 || (size_t)words[i] >= vocabulary)) {
            return fsdpi_fail_together(tp, FSDP_ERR_ARG, "%s: word %d at row %zu; the vocabulary has 0 to %zu%s",
                                       function, (int)words[i], i, vocabulary - 1, some ? ", and -1 is no target" : "");
        }
    }
    return FSDP_OK;
}
