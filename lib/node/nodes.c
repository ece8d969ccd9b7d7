#include "lib/node/nodes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/yielding.h"

size_t fsdpi_nodes_bytes(int size)
{
    return (size_t)size * sizeof(uint64_t) + (5 * (size_t)size + 1) * sizeof(int);
}

/*
 * What tells the machine of this process from others: the name of the host, and the number that Linux draws when it
 * boots, for two hosts of one name. MPI_Comm_split_type() would tell as well, but may wait by spinning; see
 * lib/base/yielding.h.
 */
static uint64_t identity_of_host(void)
{
    char  name[256] = "", boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file != NULL) {
        (void)fgets(boot, sizeof boot, file);
        (void)fclose(file);
    }
    (void)gethostname(name, sizeof name - 1);
    return fsdpi_hash_text(fsdpi_hash_text(FSDPI_HASH_START, name), boot);
}

/* Of a rank's identity: the lowest bits tell folders apart, the others hosts. */
enum { FOLDER_BITS = 24 };

/*
 * What tells the memory that this process can share from others': its host, and the folder in which shared memory is made.
 * In containers, ranks of one host see different folders of one name. The kernel gives each file system a device number of
 * its own, so that this and the number of the folder tell folders of one host apart, whatever they are called.
 */
static uint64_t identity_of_memory(const char *folder)
{
    const uint64_t host = identity_of_host();
    uint64_t       both = host;
    struct stat    at;

    if (stat(folder, &at) == 0) {
        both = fsdpi_hash_u64(fsdpi_hash_u64(both, (uint64_t)at.st_dev), (uint64_t)at.st_ino);
    }
    both ^= both >> 32;
    return host >> FOLDER_BITS << FOLDER_BITS | (both & ((UINT64_C(1) << FOLDER_BITS) - 1));
}

/* How many ranks of its host share no memory with this one, if it is the lowest of the host; else 0. */
static int count_apart(const uint64_t *identities, int rank, int size)
{
    int apart = 0;

    for (int r = 0; r < size; r++) {
        if (identities[r] >> FOLDER_BITS != identities[rank] >> FOLDER_BITS) {
            continue;
        }
        if (r < rank) {
            return 0;
        }
        apart += identities[r] != identities[rank];
    }
    return apart;
}

/* From the host of each rank to the lowest rank of its node: `divided` ranks of a host at a time; 0: all. */
static void divide(const uint64_t *host, int size, int divided, int *lowest)
{
    for (int r = 0; r < size; r++) {
        int before = 0, last = r;

        for (int q = 0; q < r; q++) {
            before += host[q] == host[r];
            last = host[q] == host[r] ? q : last;
        }
        const bool first = divided == 0 ? before == 0 : before % divided == 0;
        lowest[r]        = first ? r : lowest[last];
    }
}

/* `lowest` holds the lowest rank of the node of each rank. */
static void number_nodes(fsdpi_nodes *nodes, const int *lowest, int rank, int size)
{
    int n = 0;

    nodes->count = 0;
    for (int r = 0; r < size; r++) {
        if (lowest[r] != r) {
            continue;
        }
        nodes->first[nodes->count] = n;
        for (int q = r; q < size; q++) {
            if (lowest[q] == r) {
                nodes->node_of[q]     = nodes->count;
                nodes->position_of[q] = n - nodes->first[nodes->count];
                nodes->members[n++]   = q;
            }
        }
        nodes->count++;
        nodes->first[nodes->count] = n;
        nodes->largest             = fsdpi_node_size(nodes, nodes->count - 1) > nodes->largest
                                         ? fsdpi_node_size(nodes, nodes->count - 1)
                                         : nodes->largest;
    }
    nodes->smallest = nodes->largest;
    for (int m = 0; m < nodes->count; m++) {
        nodes->smallest = fsdpi_node_size(nodes, m) < nodes->smallest ? fsdpi_node_size(nodes, m) : nodes->smallest;
    }
    nodes->mine     = nodes->node_of[rank];
    nodes->position = nodes->position_of[rank];
    nodes->size     = fsdpi_node_size(nodes, nodes->mine);
}

fsdp_status fsdpi_nodes_find(MPI_Comm comm, const char *shm_dir, int divided, int timeout_s, void *memory,
                             fsdpi_nodes *nodes)
{
    const uint64_t mine  = identity_of_memory(shm_dir);
    uint64_t      *hosts = memory;
    int            rank, size;

    (void)MPI_Comm_rank(comm, &rank);
    (void)MPI_Comm_size(comm, &size);
    int *lowest        = (int *)(void *)(hosts + size);
    *nodes             = (fsdpi_nodes){0};
    nodes->node_of     = lowest + size;
    nodes->position_of = lowest + (ptrdiff_t)2 * size;
    nodes->members     = lowest + (ptrdiff_t)3 * size;
    nodes->first       = lowest + (ptrdiff_t)4 * size;
    FSDPI_TRY_MPI(NULL, fsdpi_mpi_allgather(&mine, hosts, 1, MPI_UINT64_T, comm, timeout_s));
    divide(hosts, size, divided, lowest);
    number_nodes(nodes, lowest, rank, size);
    nodes->apart = count_apart(hosts, rank, size);
    return FSDP_OK;
}

fsdp_status fsdpi_nodes_locate(MPI_Comm comm, const char *shm_dir, int timeout_s, int *node, int *number)
{
    fsdpi_nodes nodes;
    int         size = 0;
    fsdp_status status;

    (void)MPI_Comm_size(comm, &size);
    void     *memory = malloc(fsdpi_nodes_bytes(size));
    int       all    = memory != NULL;
    const int code   = fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, comm, timeout_s);
    if (code != MPI_SUCCESS) {
        status = fsdpi_fail_mpi(NULL, code, "finding nodes");
    } else if (!all || memory == NULL) {
        status = fsdpi_fail(NULL, FSDP_ERR_MEMORY, "no memory for the nodes of %d ranks on at least one of them", size);
    } else {
        status  = fsdpi_nodes_find(comm, shm_dir, 0, timeout_s, memory, &nodes);
        *node   = status == FSDP_OK ? nodes.mine : 0;
        *number = status == FSDP_OK ? nodes.first[nodes.mine] + nodes.position : 0;
    }
    free(memory);
    return status;
}
