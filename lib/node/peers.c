#include "lib/node/peers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/yielding.h"
#include "lib/device/memory.h"

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

static size_t pids_bytes(int size)
{
    return (size_t)fsdpi_positions(size) * sizeof(long);
}

size_t fsdpi_peers_bookkeeping(int size)
{
    return fsdpi_alloc_size(pids_bytes(size));
}

fsdp_status fsdpi_peers_open(fsdpi_peers *peers, fsdpi_core *core, const fsdpi_nodes *nodes)
{
    peers->core  = core;
    peers->nodes = nodes;
    peers->pids  = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, pids_bytes(core->size));
    fsdpi_pages_open(&peers->open, (size_t)sysconf(_SC_PAGESIZE));
    return peers->pids != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

void fsdpi_peers_close(fsdpi_peers *peers)
{
    if (peers->pids != NULL) {
        fsdpi_free(peers->core->ctx, FSDP_MEMORY_BOOKKEEPING, peers->pids, pids_bytes(peers->core->size));
    }
    *peers = (fsdpi_peers){0};
}

fsdp_status fsdpi_peers_probe(fsdpi_peers *peers)
{
    const fsdpi_core *core = peers->core;
    const uint64_t    word = (uint64_t)getpid() * 0x9e3779b97f4a7c15u + (uint64_t)core->rank;
    const greeting    mine = {.pid = (long)getpid(), .address = (uint64_t)(uintptr_t)&word, .word = word};
    greeting          all[FSDPI_MOST_ON_NODE];
    int               seen = core->config.cma == FSDP_CMA_AUTO;

    FSDPI_TRY_MPI(core->ctx,
                  fsdpi_mpi_allgather(&mine, all, (int)sizeof mine, MPI_BYTE, core->node_comm, core->config.timeout_s));
    for (int p = 0; p < peers->nodes->size; p++) {
        peers->pids[p] = all[p].pid;
        seen           = seen && (p == peers->nodes->position || sees(&all[p]));
    }
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(&seen, 1, MPI_INT, MPI_MIN, core->comm,
                                                 core->config.timeout_s)); /* and `word` stays until here */
    peers->readable = seen != 0;
    return FSDP_OK;
}

/*
 * The question takes about a microsecond: too long beside a short operation, so that an answer is remembered for these. A
 * program that has put other memory there since goes unnoticed, as in lib/device/mapped.h.
 */
enum { ASKED_ANEW_BYTES = 256 << 10 };

bool fsdpi_peers_may_read(fsdpi_peers *peers, const void *memory, size_t bytes)
{
    char               ends[2];
    unsigned char     *first = (unsigned char *)(uintptr_t)memory;
    const struct iovec here  = {.iov_base = ends, .iov_len = sizeof ends};

    if (bytes == 0 || (bytes < ASKED_ANEW_BYTES && fsdpi_pages_are_known(&peers->open, memory, bytes))) {
        return true;
    }
    const struct iovec there[2] = {{.iov_base = first, .iov_len = 1}, {.iov_base = first + bytes - 1, .iov_len = 1}};
    if (process_vm_readv((pid_t)peers->pids[peers->nodes->position], &here, 1, there, 2, 0) != (ssize_t)sizeof ends) {
        return false;
    }
    fsdpi_pages_remember(&peers->open, memory, bytes);
    return true;
}

fsdp_status fsdpi_peer_read(const fsdpi_peers *peers, int position, uint64_t address, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        size_t read;

        if (!read_some(peers->pids[position], address + done, (unsigned char *)to + done, bytes - done, &read)) {
            peers->core->broken = FSDP_ERR_MPI;
            return fsdpi_fail(peers->core->ctx, FSDP_ERR_MPI,
                              "the memory of rank %d at %#" PRIx64 " cannot be read: %s; set FSDP_CMA=off",
                              fsdpi_rank_at(peers->nodes, peers->nodes->mine, position), address + done,
                              strerror(errno));
        }
        done += read;
    }
    return FSDP_OK;
}
