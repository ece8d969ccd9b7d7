/**
 * @file
 * What the functions of fsdp/tensor_parallel.h check alike. Failures are recorded for an agreement to print, or for
 * fsdpi_error_print().
 */
#ifndef FSDPI_TENSOR_PARALLEL_ARGUMENTS_H
#define FSDPI_TENSOR_PARALLEL_ARGUMENTS_H

#include <stdbool.h>

#include "fsdp/tensor_parallel.h"

/** Words of a vocabulary that this rank has: `count` from `begin` on. */
typedef struct fsdpi_words {
    size_t begin, count;
} fsdpi_words;

fsdpi_words fsdpi_words_of(const fsdp_context *tp, size_t vocabulary);

/** FSDP_ERR_ARG where `function` cannot be given these. */
fsdp_status fsdpi_activations_check(fsdp_context *tp, const char *function, const fsdp_tp_activations *activations);

/** FSDP_ERR_ARG where one is NULL. `bytes`: how long both are; 0 needs no memory. */
fsdp_status fsdpi_buffers_check(fsdp_context *tp, const char *function, const void *in, const void *out, size_t bytes);

/** An array of a call, and what to call it. */
typedef struct fsdpi_array {
    const char *what;
    const void *memory;
    size_t      bytes; /* 0: it does not count */
} fsdpi_array;

/** Whether the two are on this rank's GPU. FSDP_ERR_ARG where only one is, and the errors of fsdpi_is_on_device_of(). */
fsdp_status fsdpi_place_check(fsdp_context *tp, const char *function, const fsdpi_array *a, const fsdpi_array *b,
                              bool *on_device);

/** Whether words are on this rank's GPU. They may only be there if what they are for is, `on_device`. */
fsdp_status fsdpi_words_place_check(fsdp_context *tp, const char *function, const int32_t *words, size_t n,
                                    bool on_device, bool *there);

/**
 * FSDP_ERR_ARG where there is no vocabulary, or one of `n` is not in it; `some`: FSDP_TP_NO_TARGET is allowed. `there`: they are on a GPU,
 * and none is looked at.
 */
fsdp_status fsdpi_words_check(fsdp_context *tp, const char *function, const int32_t *words, size_t n, size_t vocabulary,
                              bool some, bool there);

#endif
