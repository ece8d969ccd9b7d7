/*
 * Blocks on GPUs: copies and reductions go into the operation's stream, slots lie in device memory where peers reach it, and the
 * host waits for the stream only where they do not, and before data goes to other nodes.
 */
#include "collectives/blocks/ops.h"
#include "collectives/blocks/staged.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static unsigned char *slot(const fsdp_request *request, int position, uint64_t number)
{
    return fsdpi_gpu_slot(&request->ctx->gpu, position, number);
}

static void begin_publishing(fsdp_request *request, uint64_t number)
{
    fsdpi_gpu_hear_slots_free(request, number);
}

static bool end_publishing(fsdp_request *request, uint64_t number)
{
    fsdpi_gpu_say_ready(request, number);
    return !fsdpi_gpu_through_host(&request->ctx->gpu);
}

static void begin_taking(fsdp_request *request, uint64_t number)
{
    fsdpi_gpu_hear_ready(request, number);
}

static bool is_done(fsdp_request *request)
{
    return fsdpi_gpu_is_idle(request);
}

/* Where slots are in the mailbox, all that this rank's GPU reads there is read. */
static bool is_over(fsdp_request *request)
{
    return !fsdpi_gpu_through_host(&request->ctx->gpu) || fsdpi_gpu_is_idle(request);
}

const fsdpi_blocks_ops fsdpi_blocks_device = {.most_bytes       = SIZE_MAX,
                                              .slot             = slot,
                                              .begin_publishing = begin_publishing,
                                              .end_publishing   = end_publishing,
                                              .begin_taking     = begin_taking,
                                              .end_taking       = fsdpi_gpu_say_done,
                                              .is_done          = is_done,
                                              .is_over          = is_over};

const fsdpi_algorithm fsdpi_staged_device = {
    .name = "staged", .advance = fsdpi_staged_advance, .end = fsdpi_staged_end, .agrees_at_end = true};
