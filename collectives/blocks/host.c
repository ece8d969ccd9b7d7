/* Blocks in the slots of the mailbox, of a size that stays in the cache. */
#include "collectives/blocks/ops.h"
#include "collectives/blocks/windows.h"
#include "lib/context/context.h"

static unsigned char *slot(const fsdp_request *request, int position, uint64_t number)
{
    return fsdpi_slot_of(&request->lane->box, position, number);
}

static void nothing(fsdp_request *request, uint64_t number)
{
    (void)request;
    (void)number;
}

static bool may_post(fsdp_request *request, uint64_t number)
{
    nothing(request, number);
    return true;
}

static bool at_once(fsdp_request *request)
{
    (void)request;
    return true;
}

const fsdpi_blocks_ops fsdpi_blocks_host = {.most_bytes       = FSDPI_BLOCK_BYTES,
                                            .slot             = slot,
                                            .begin_publishing = nothing,
                                            .end_publishing   = may_post,
                                            .begin_taking     = nothing,
                                            .end_taking       = nothing,
                                            .is_done          = at_once,
                                            .is_over          = at_once};
