#include "collectives/blocks/transposed.h"

#include <string.h>

static size_t block_bytes(const fsdp_request *request)
{
    return request->call.count * request->call.width;
}

size_t fsdpi_transposed_bytes(const fsdp_request *request, int node)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;

    return block_bytes(request) * (size_t)nodes->size * (size_t)fsdpi_node_size(nodes, node);
}

const unsigned char *fsdpi_transposed_for(const fsdp_request *request, int node)
{
    const fsdpi_nodes   *nodes = &request->ctx->nodes;
    const unsigned char *data  = fsdpi_pairs_payload(&request->lane->exchange, nodes->mine);

    if (nodes->largest == 1) {
        return (const unsigned char *)request->call.in +
               (size_t)node * block_bytes(request); /* its number is its rank's */
    }
    for (int m = 0; m < node; m++) { /* there are few */
        data += m != nodes->mine ? fsdpi_transposed_bytes(request, m) : 0;
    }
    return data;
}

/* The blocks of one rank of this node for the ranks of another. */
static void fill_for_node(const fsdp_request *request, const unsigned char *in, int node, unsigned char *to)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const size_t       block = block_bytes(request);

    for (int p = 0; p < fsdpi_node_size(nodes, node); p++) {
        memcpy(to + (size_t)p * block, in + (size_t)fsdpi_rank_at(nodes, node, p) * block, block);
    }
}

size_t fsdpi_fill_transposed(const fsdpi_published *from, unsigned char *payload)
{
    const fsdp_request *request = from->request;
    const fsdpi_nodes  *nodes   = &request->ctx->nodes;
    size_t              bytes   = 0;

    for (int m = 0; m < nodes->count && block_bytes(request) > 0; m++) {
        const size_t each = fsdpi_transposed_bytes(request, m) / (size_t)nodes->size;

        for (int p = 0; p < nodes->size && m != nodes->mine; p++, bytes += each) {
            fill_for_node(request, p == nodes->position ? request->call.in : fsdpi_published_by(from, p), m,
                          payload + bytes);
        }
    }
    return bytes;
}

const unsigned char *fsdpi_transposed_from(const fsdp_request *request, fsdpi_seated peer)
{
    const fsdpi_nodes *nodes  = &request->ctx->nodes;
    const size_t       before = (size_t)peer.position * (size_t)nodes->size + (size_t)nodes->position;

    return fsdpi_pairs_payload(&request->lane->exchange, peer.node) + before * block_bytes(request);
}
