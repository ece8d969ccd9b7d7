/**
 * @file
 * The queue of operations of a context, in two lanes: see lib/progress/lane.h.
 *
 * An operation goes through
 *   1. prepare: claims its memory on this rank;
 *   2. agreement (lib/progress/agreement.h): every rank learns whether all call the same with arguments that are good. It rides on
 *      the synchronisation that the operation needs anyway, and short data rides on it too. If the ranks do not agree,
 *      they exchange a line of text each, so that all return the same error with the same detail, and nothing moves;
 *   3. where its data does not ride on that, a change of lanes (lib/progress/change_lanes.h), and steps of an algorithm, none of
 *      which blocks;
 *   4. leaving: where peers read this rank's memory directly, it stays until they have finished. On GPUs, where a step can
 *      fail on one rank alone, that is a second agreement.
 * One thread at a time carries operations out: one that waits for them, or else the context's progress thread. A thread
 * that issues a blocking operation with nothing before it does all of it itself.
 */
#ifndef FSDPI_QUEUE_H
#define FSDPI_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/collectives.h"
#include "lib/progress/queue_state.h"
#include "lib/progress/request.h"
#include "lib/topology/bind.h"

/**
 * Takes an operation into the queue.
 *
 * @param[in]  status   FSDP_OK; or what is wrong with this rank's arguments, with the detail recorded in the context: the
 *                      operation then only carries that to the other ranks
 * @param[out] request  ends with fsdp_wait() or fsdp_test()
 */
fsdp_status fsdpi_queue_issue(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status, fsdp_request **request);

/** Issues an operation and waits for it: on the calling thread where nothing is before it. */
fsdp_status fsdpi_queue_run(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status);

/** Whether the memory of a call can be that of the one before it, which `request` has served; then it has it from now on. */
typedef bool fsdpi_takes_memory(fsdp_request *request, const fsdpi_plain_call *call);

/**
 * Runs a call that repeats the last one carried out in one step (fsdpi_carry_out_briefly()), with the same memory or other, as sums in
 * a loop do: in the same request, and with its fingerprint. False: it does not repeat it, or another thread is at work.
 */
bool fsdpi_queue_run_again(fsdpi_queue *queue, const fsdpi_plain_call *call, fsdpi_takes_memory *takes_memory,
                           fsdp_status *status);

/** Addresses may mean other memory from now on, or none. */
void fsdpi_queue_forget_calls(fsdpi_queue *queue);

/**
 * The verdict of all ranks on a step that moves no data, where ranks must have come with the same `label` and `salt`.
 * @param[in] behind  it begins when all that was issued before is done; else it does not wait for data of that
 * @param[in] status  this rank's own verdict, its detail recorded in the context
 * @param[in] forced  also under FSDP_VERIFY=off
 */
fsdp_status fsdpi_queue_agree(fsdpi_queue *queue, const char *name, const char *label, uint64_t salt, bool behind,
                              fsdp_status status, bool forced);

/** Allocates what every context's queue needs, and starts its thread if it is to have one; on failure closes it again. */
fsdp_status fsdpi_queue_open(fsdpi_queue *queue);
fsdp_status fsdpi_queue_start_thread(fsdpi_queue *queue, const fsdpi_binding *binding);

/**
 * While no operation is to be carried out, the thread lets MPI go on with messages of its own that the library has under way outside of
 * the queue: often from now on, seldom when some time has passed. Does nothing where there is no thread.
 */
void fsdpi_queue_watch(fsdpi_queue *queue);
void fsdpi_queue_unwatch(fsdpi_queue *queue);

/** Instead of a thread: whoever waits for something in this process advances its operations too. */
void fsdpi_queue_go_without_thread(fsdpi_queue *queue);

/** Completes what is queued, where the context is not broken. From then on the queue has no thread. */
void fsdpi_queue_drain(fsdpi_queue *queue);

/** How many requests nobody has waited for, behind that. */
size_t fsdpi_queue_never_ended(const fsdpi_queue *queue);

void fsdpi_queue_close(fsdpi_queue *queue);

/** What fsdp_wait_seconds(), fsdp_wait_cpu_seconds() and fsdp_last_algorithm() say. */
double      fsdpi_queue_wait_seconds(fsdpi_queue *queue);
double      fsdpi_queue_wait_cpu_seconds(fsdpi_queue *queue);
const char *fsdpi_queue_last_algorithm(fsdpi_queue *queue);

/**
 * Provides requests for `n` operations more with call.is_reserved, and takes them back when those have ended: so that a budget
 * knows them. Any thread.
 */
fsdp_status fsdpi_queue_reserve(fsdpi_queue *queue, size_t n);
void        fsdpi_queue_unreserve(fsdpi_queue *queue, size_t n);

/** BYTES of bookkeeping that it takes. */
size_t fsdpi_queue_reserve_bookkeeping(size_t n);

/** BYTES of bookkeeping of a queue just opened. */
size_t fsdpi_queue_bookkeeping(void);

#endif
