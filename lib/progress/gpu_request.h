/**
 * @file
 * An operation on device memory: what it puts into its stream, and where it meets other work; see lib/sync/gpu_streams.h.
 *
 * None of this waits on the host, except where the agreement at the end has failed, or the order behind the caller's stream. What fails is kept as this rank's verdict,
 * after which the rest of the operation only keeps up what peers count on, without asking whether anything is done; the
 * agreement that ends such an operation waits for all of it, and makes it the error of all ranks.
 */
#ifndef FSDPI_GPU_REQUEST_H
#define FSDPI_GPU_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/progress/request.h"
#include "lib/sync/gpu_streams.h"

/**
 * What the queue does for it: the operation begins behind what was in the caller's stream when it was issued, and what the
 * caller puts into that stream after fsdp_wait() comes behind the operation.
 */
extern const fsdpi_request_ops fsdpi_gpu_request_ops;

/** Says, before a letter of this rank, or hears, behind all peers' letters of that number: see lib/sync/gpu_streams.h. */
void fsdpi_gpu_say_ready(fsdp_request *request, uint64_t number);
void fsdpi_gpu_hear_ready(fsdp_request *request, uint64_t number);
void fsdpi_gpu_say_done(fsdp_request *request, uint64_t number);
void fsdpi_gpu_hear_done(fsdp_request *request, uint64_t number);

/** Hears of all streams that nobody uses this rank's slot for letters of that parity any more. */
void fsdpi_gpu_hear_slots_free(fsdp_request *request, uint64_t number);

/**
 * Between nodes an operation has both streams of its context: whether what comes next goes into the other one. And marks,
 * numbered from 0 as messages are: what is in the stream until now is marked; whether all of that is done, or
 * something has failed; and what comes next waits for it.
 */
void fsdpi_gpu_turn_aside(fsdp_request *request, bool aside);
void fsdpi_gpu_mark(fsdp_request *request, size_t number);
bool fsdpi_gpu_is_past(fsdp_request *request, size_t number);
void fsdpi_gpu_come_behind(fsdp_request *request, size_t number);

/** Whether all that the operation has put into its stream is done, or something has failed. */
bool fsdpi_gpu_is_idle(fsdp_request *request);

/** Copies, or reduces: with the call's type, or as another one; or casts from one type to another. */
void fsdpi_gpu_move(fsdp_request *request, void *to, const void *from, size_t bytes);
void fsdpi_gpu_reduce_to(fsdp_request *request, void *const *to, size_t n_to, const void *const *from, size_t n_from,
                         size_t count, fsdp_redop op, size_t divisor);
void fsdpi_gpu_reduce_as(fsdp_request *request, void *const *to, size_t n_to, const void *const *from, size_t n_from,
                         size_t count, fsdp_dtype dtype, fsdp_redop op, size_t divisor);
void fsdpi_gpu_cast_to(fsdp_request *request, void *to, fsdp_dtype to_dtype, const void *from, fsdp_dtype from_dtype,
                       size_t count);

#endif
