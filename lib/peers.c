#include "lib/peers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/context.h"
#include "lib/error.h"
#include "lib/yielding.h"

static bool read_some(long pid, uint64_t address, void *to, size_t bytes, size_t *read)
{
    const struct iovec here  = {.iov_base = to, .iov_len = bytes};
    const struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    const ssize_t      n     = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

    *read = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* What each rank shows the others: a word on its own stack, and where it is. */
typedef struct greeting {
    long     pid;
    uint64_t address;
    uint64_t word;
} greeting;

static bool sees(const greeting *peer)
{
    uint64_t word = 0;
    size_t   read;

    return read_some(peer->pid, peer->address, &word, sizeof word, &read) && read == sizeof word && word == peer->word;
}

fsdp_status fsdpi_peers_probe(fsdp_context *ctx)
{
    const uint64_t word = (uint64_t)getpid() * 0x9e3779b97f4a7c15u + (uint64_t)ctx->rank;
    greeting       mine = {.pid = (long)getpid(), .address = (uint64_t)(uintptr_t)&word, .word = word};
    int            all  = ctx->config.cma == FSDP_CMA_AUTO;

    for (int p = 0; p < ctx->nodes.size; p++) {
        greeting peer = mine;

        FSDPI_TRY_MPI(ctx,
                      fsdpi_mpi_broadcast(&peer, (int)sizeof peer, MPI_BYTE, p, ctx->node_comm, ctx->config.timeout_s));
        ctx->box.pids[p] = peer.pid;
        all              = all && (p == ctx->nodes.position || sees(&peer));
    }
    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, ctx->comm,
                                           ctx->config.timeout_s)); /* and `word` stays until here */
    ctx->reads_peers = all != 0;
    return FSDP_OK;
}

fsdp_status fsdpi_peer_read(fsdp_context *ctx, int position, uint64_t address, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        size_t read;

        if (!read_some(ctx->box.pids[position], address + done, (unsigned char *)to + done, bytes - done, &read)) {
            ctx->broken = FSDP_ERR_MPI;
            return fsdpi_fail(ctx, FSDP_ERR_MPI,
                              "the memory of rank %d at %#" PRIx64 " cannot be read: %s; set FSDP_CMA=off",
                              fsdpi_rank_at(&ctx->nodes, ctx->nodes.mine, position), address + done, strerror(errno));
        }
        done += read;
    }
    return FSDP_OK;
}
