/**
 * @file
 * The operations in which host and GPU differ where data goes between nodes; each fills in this table.
 *
 * Work is what a chunk needs before it is sent, or after it has come. On the host it is done at once. On the GPU it ends later, and
 * a mark tells when. Marks are numbered like messages: see collectives/rails/layout.h.
 */
#ifndef FSDPI_RAILS_OPS_H
#define FSDPI_RAILS_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/progress/queue.h"

/** What work is for: chunks that leave this rank, or that come and are reduced. */
typedef enum fsdpi_direction { FSDPI_LEAVING, FSDPI_COMING } fsdpi_direction;

typedef struct fsdpi_rails_ops {
    /** BYTES that suit a chunk best; and the most that leave room for so many chunks in staging memory. */
    size_t (*wanted_bytes)(const fsdp_request *request);
    size_t (*room_bytes)(const fsdp_request *request, size_t places);
    /** Whether MPI cannot take the memory of the call: messages then go through staging memory of the host. */
    bool (*stages)(const fsdp_request *request);
    /** The staging memory in which partial results are computed. */
    unsigned char *(*staging)(const fsdp_request *request);
    /** Says what the work begun from now on is for. */
    void (*turn)(fsdp_request *request, fsdpi_direction direction);
    /** Marks the end of the work begun so far. Returns whether that is still to come. */
    bool (*mark)(fsdp_request *request, size_t mark);
    /** Whether all work before a mark is done. */
    bool (*is_past)(fsdp_request *request, size_t mark);
    /** Starts an operation after what the caller and the peers have begun before it, whose end it marks. */
    void (*start)(fsdp_request *request, size_t mark);
    /** Whether messages may be posted. */
    bool (*has_started)(fsdp_request *request, size_t mark);
    /** Once all chunks have come and gone: whether all work is done. */
    bool (*is_at_rest)(fsdp_request *request);
} fsdpi_rails_ops;

extern const fsdpi_rails_ops fsdpi_rails_host;
extern const fsdpi_rails_ops fsdpi_rails_device;

static inline const fsdpi_rails_ops *fsdpi_rails_ops_of(const fsdp_request *request)
{
    return request->call.on_device ? &fsdpi_rails_device : &fsdpi_rails_host;
}

#endif
