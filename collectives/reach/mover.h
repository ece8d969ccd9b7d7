/**
 * @file
 * How data is moved and reduced; host and GPU each fill in this table.
 *
 * On the host everything is done when a function returns. On the GPU it goes into the operation's stream, and a failure becomes
 * this rank's verdict: see lib/progress/gpu_request.h.
 */
#ifndef FSDPI_MOVER_H
#define FSDPI_MOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/progress/queue.h"

typedef struct fsdpi_mover {
    /** Copies, through the caches. */
    void (*move)(fsdp_request *request, void *to, const void *from, size_t bytes);
    /**
     * Copies into the result of the call: past the caches, if fsdpi_goes_past(), only on processors that favour it. On others, MPI's
     * own copies of what comes meanwhile took up to a fifth longer beside it.
     */
    void (*place)(fsdp_request *request, void *to, const void *from, size_t bytes);
    /** Copies into the result of the call, past the caches if fsdpi_goes_past(). Does nothing where the data is already there. */
    void (*copy)(fsdp_request *request, void *to, const void *from, size_t bytes);
    /** Copies between two places that may overlap, once all ranks have left the operation. */
    void (*settle)(fsdp_request *request, void *to, const void *from, size_t bytes);
    /** Reduces the first `n` of ctx->operands. */
    void (*reduce)(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor);
    /** The same into the result of the call, past the caches if fsdpi_goes_past(). */
    void (*reduce_result)(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor);
    /** The same, past the caches where `place` goes past them. */
    void (*place_reduced)(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor);
    /** From 16-bit elements to f32, and back; and a reduction of f32, whatever the call's type. */
    void (*widen)(fsdp_request *request, void *to, const void *from, size_t count);
    void (*narrow)(fsdp_request *request, void *to, const void *from, size_t count);
    void (*reduce_wide)(fsdp_request *request, void *to, const void *const *in, size_t n, size_t count, fsdp_redop op,
                        size_t divisor);
    /** Where memory of the mailbox is addressed by what moves the data. */
    unsigned char *(*in_mailbox)(const fsdp_request *request, void *memory);
} fsdpi_mover;

extern const fsdpi_mover fsdpi_host_mover;
extern const fsdpi_mover fsdpi_device_mover;

static inline const fsdpi_mover *fsdpi_mover_of(const fsdp_request *request)
{
    return request->call.on_device ? &fsdpi_device_mover : &fsdpi_host_mover;
}

/** Notes which host memory a call reads, and whether caches may hold it: request->is_cold. Once for each call, as it begins. */
void fsdpi_note_memory(fsdp_request *request);

/** Whether on the host the results of a call should not go through the caches, where they are not written over what it reads. */
bool fsdpi_goes_past(const fsdp_request *request);

#endif
