/**
 * @file
 * The operations in which host and GPU differ where data goes through blocks; each fills in this table.
 * On the host everything is done when a function returns: peers only have to wait for the letters.
 */
#ifndef FSDPI_BLOCKS_OPS_H
#define FSDPI_BLOCKS_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/progress/queue.h"

typedef struct fsdpi_blocks_ops {
    /** BYTES of a block, at most, however large the slots are. */
    size_t most_bytes;
    /** Where this rank sees the slot of a peer that belongs to a letter. */
    unsigned char *(*slot)(const fsdp_request *request, int position, uint64_t number);
    /** Called before this rank writes to its slot, and after. The latter returns whether the letter may be posted at once; if
     *  not, is_done() tells when. */
    void (*begin_publishing)(fsdp_request *request, uint64_t number);
    bool (*end_publishing)(fsdp_request *request, uint64_t number);
    /** Called before this rank reads the slots of its peers, when their letters have come, and after. */
    void (*begin_taking)(fsdp_request *request, uint64_t number);
    void (*end_taking)(fsdp_request *request, uint64_t number);
    /** Whether everything begun so far is done. */
    bool (*is_done)(fsdp_request *request);
    /** After the last block: whether peers may use the mailbox for something else. */
    bool (*is_over)(fsdp_request *request);
} fsdpi_blocks_ops;

extern const fsdpi_blocks_ops fsdpi_blocks_host;
extern const fsdpi_blocks_ops fsdpi_blocks_device;

static inline const fsdpi_blocks_ops *fsdpi_blocks_ops_of(const fsdp_request *request)
{
    return request->call.on_device ? &fsdpi_blocks_device : &fsdpi_blocks_host;
}

#endif
