/**
 * @file
 * An operation on device memory: what it puts into its stream, and where it meets other work; see gpu_context.h.
 *
 * None of these waits but fsdpi_gpu_finish(). What fails is kept as this rank's verdict, after which the rest of the operation
 * only keeps up what peers count on, without asking whether anything is done; the agreement that ends such an operation waits
 * for all of it, and makes it the error of all ranks.
 */
#ifndef FSDPI_GPU_REQUEST_H
#define FSDPI_GPU_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/queue.h"

/** When it is issued, on the caller's thread: remembers what is in the caller's stream. */
fsdp_status fsdpi_gpu_note_issue(fsdp_request *request);

/** When it begins: comes behind that. */
void fsdpi_gpu_begin(fsdp_request *request);

/** When all is in the stream: remembers what. And when the caller has waited: the caller's stream comes behind it. */
fsdp_status fsdpi_gpu_note_end(fsdp_request *request);
fsdp_status fsdpi_gpu_hand_over(fsdp_request *request);

/** Says, before a letter of this rank, or hears, behind all of its peers' letters of that number: see gpu_context.h. */
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

/** Waits on the host for all of that, in both streams, after a failure. */
void fsdpi_gpu_finish(fsdp_request *request);

/** Copies, or reduces with the call's type. */
void fsdpi_gpu_move(fsdp_request *request, void *to, const void *from, size_t bytes);
void fsdpi_gpu_reduce_to(fsdp_request *request, void *const *to, size_t n_to, const void *const *from, size_t n_from,
                         size_t count, fsdp_redop op, size_t divisor);

/** Where this rank's GPU sees the slot that goes with a letter: in a GPU's memory, or in the mailbox. */
unsigned char *fsdpi_gpu_slot(const fsdp_context *ctx, int position, uint64_t number);

/** In the memory of this rank's GPU, what stands for the mailbox's staging memory behind the slots. Across nodes only. */
unsigned char *fsdpi_gpu_rest(const fsdp_context *ctx);

/** Where it sees what is in the mailbox. */
unsigned char *fsdpi_gpu_view(const fsdp_context *ctx, const void *in_mailbox);

/** Whether slots are in the mailbox, or records are: then the host waits for the stream before it says something. */
bool fsdpi_gpu_through_host(const fsdp_context *ctx);

/** Releases what requests hold of the GPU. */
void fsdpi_gpu_release_event(fsdp_request *request);

#endif
