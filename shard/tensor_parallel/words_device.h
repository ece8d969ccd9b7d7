/**
 * @file
 * Divided vocabularies on the GPU of a context: embeddings and their gradients, and what both and cross-entropy do with words.
 */
#ifndef FSDPI_WORDS_DEVICE_H
#define FSDPI_WORDS_DEVICE_H

#include <stdbool.h>

#include "kernels/gpu.h"
#include "lib/context/context.h"

/** How far `rows` words reach in scratch memory, in BYTES: a multiple of 8. Words that are `there` already need none. */
size_t fsdpi_words_room(size_t rows, bool there);

/** The words where the GPU finds them: where they are, or at `room`, to where they are brought. */
fsdp_status fsdpi_words_bring(fsdp_context *tp, const int32_t *words, size_t rows, bool there, void *room,
                              const int32_t **found);

/** fsdp_tp_embed() and fsdp_tp_embed_backward(), in the caller's stream. `lookup->words`: on the host, or `there`. */
fsdp_status fsdpi_embed_on_device(fsdp_context *tp, const fsdpi_gpu_lookup *lookup, bool there, const void *table,
                                  void *out);
fsdp_status fsdpi_embed_backward_on_device(fsdp_context *tp, const fsdpi_gpu_lookup *lookup, bool there,
                                           const void *d_out, void *d_table);

#endif
