/*
 * Allreduce on one node, any memory, through the slots of the mailbox. A block is a window of every rank's part of the
 * vector. Each rank publishes the windows that the others reduce; reduces its own window, in rank order, into its result
 * and into the slot of the rank behind it, where its operand from that rank has just been; and when all have done so
 * copies the other windows from there.
 *
 * A line of a slot goes to the rank that reduces it and comes back as the result, and never has to be fetched to be
 * written: on two ranks each line passes once in each direction, which is all that crosses between the caches.
 *
 * Cost on L ranks for S bytes: two synchronisations per block, 2 S of memory traffic per rank, and in the caches besides
 * (L-1)/L S published, S reduced and (L-1)/L S taken.
 */
#include "collectives/blocks/staged.h"
#include "collectives/allreduce/allreduce.h"
#include "collectives/arguments/slices.h"
#include "collectives/blocks/windows.h"
#include "collectives/reach/mover.h"
#include "lib/context/context.h"

enum { PUBLISH, MEET, REDUCED };

/* ELEMENTS of a window: lines of their own, in a block that stays in a cache. 0: a slot has no room for so many parts. */
static size_t window_count(const fsdp_request *request)
{
    const fsdp_context *ctx    = request->ctx;
    const size_t        slot   = fsdpi_slot_capacity(&request->lane->box);
    const size_t        block  = slot < FSDPI_BLOCK_BYTES ? slot : FSDPI_BLOCK_BYTES;
    const size_t        window = block / (size_t)ctx->size / FSDPI_LINE * FSDPI_LINE;

    return window / request->call.width;
}

/* What of a rank's part is in the present block. */
static fsdpi_slice window_of(const fsdp_request *request, int rank)
{
    fsdpi_slice  part = fsdpi_slice_of(request, rank);
    const size_t most = window_count(request);
    const size_t skip = request->at * most < part.count ? request->at * most : part.count;

    part.begin += skip;
    part.count = part.count - skip < most ? part.count - skip : most;
    return part;
}

static unsigned char *in_slot(const fsdp_request *request, int position, int rank)
{
    const fsdpi_mailbox *box = &request->lane->box;

    return fsdpi_slot_of(box, position, box->number) + (size_t)rank * window_count(request) * request->call.width;
}

/* Where the result of a rank's window lies. */
static unsigned char *result_of(const fsdp_request *request, int rank)
{
    return in_slot(request, (rank + 1) % request->ctx->size, rank);
}

static void publish(fsdp_request *request)
{
    fsdp_context        *ctx   = request->ctx;
    const unsigned char *in    = request->call.in;
    const size_t         width = request->call.width;

    request->lane->box.number++; /* of this block */
    for (int r = 0; r < ctx->size; r++) {
        const fsdpi_slice w = window_of(request, r);
        if (r != ctx->rank) {
            ctx->kernels->copy(in_slot(request, ctx->rank, r), in + w.begin * width, w.count * width);
        }
    }
    fsdpi_mailbox_post(&request->lane->box, fsdpi_letter_of(&request->lane->box, ctx->rank, request->lane->box.number),
                       request->lane->box.number);
}

static void reduce(fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_call   *call  = &request->call;
    const fsdpi_slice   mine  = window_of(request, ctx->rank);
    const size_t        begin = mine.begin * call->width;
    const bool          past  = fsdpi_goes_past(request) && call->in != call->out;
    void *const         to[]  = {(unsigned char *)call->out + begin, result_of(request, ctx->rank)};

    for (int p = 0; p < ctx->size; p++) {
        ctx->operands[p] = p == ctx->rank ? (const unsigned char *)call->in + begin : in_slot(request, p, ctx->rank);
    }
    ctx->kernels->reduce_into(to, 2, ctx->operands, (size_t)ctx->size, mine.count, call->dtype, call->op,
                              (size_t)ctx->size, past ? 1 : 0);
}

static void gather(fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    unsigned char      *out   = request->call.out;
    const size_t        width = request->call.width;

    for (int r = 0; r < ctx->size; r++) {
        const fsdpi_slice w = window_of(request, r);
        if (r != ctx->rank) {
            fsdpi_mover_of(request)->copy(request, out + w.begin * width, result_of(request, r), w.count * width);
        }
    }
}

/* One block. `step` says how far it is. */
static fsdpi_progress advance_block(fsdp_request *request)
{
    fsdpi_mailbox *box = &request->lane->box;

    if (request->step == PUBLISH) {
        publish(request);
        request->step = MEET;
    } else if (request->step == MEET && fsdpi_mailbox_arrived(box, box->number)) {
        reduce(request);
        fsdpi_milestone_set(box, FSDPI_MILESTONE(box->number, FSDPI_HALFWAY));
        request->step = REDUCED;
    } else if (request->step == REDUCED && fsdpi_milestone_reached(box, FSDPI_MILESTONE(box->number, FSDPI_HALFWAY))) {
        gather(request);
        request->at++;
        request->step = PUBLISH;
    } else {
        return FSDPI_WAITING;
    }
    return FSDPI_MOVED;
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const size_t window = window_count(request);

    if (request->ctx->nodes.count > 1 || window == 0) {
        return fsdpi_staged_advance(request, progress);
    }
    *progress = request->at * window < fsdpi_largest_slice(request) ? advance_block(request) : FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allreduce_staged = {.name = "staged", .advance = advance, .leaves_together = true};
