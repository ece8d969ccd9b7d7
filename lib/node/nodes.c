#include "lib/node/nodes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/yielding.h"

/* The names of hosts lie behind the roster. */
static size_t roster_bytes(int size)
{
    return (fsdpi_roster_bytes(size) + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

size_t fsdpi_nodes_bytes(int size)
{
    return roster_bytes(size) + fsdpi_host_names_bytes(size);
}

/* ---- dividing: what all ranks compute from all hosts ---------------------------------------------------------------- */

/* The lowest rank of the last node of each host, by the host: open addressing, at most half full. */
typedef struct table {
    int   *ranks; /* -1: free */
    size_t mask;
} table;

/* What dividing takes for a while: all but the hosts, which come first. */
typedef struct workbench {
    const uint64_t *hosts;
    table           last;
    int            *node_of; /* of each rank */
    int            *counts;  /* of each node: its ranks */
} workbench;

static size_t table_slots(int size)
{
    size_t slots = 2;

    while (slots < 2 * (size_t)size) {
        slots *= 2;
    }
    return slots;
}

size_t fsdpi_nodes_scratch_bytes(int size)
{
    return (size_t)size * sizeof(uint64_t) + (table_slots(size) + 2 * (size_t)size) * sizeof(int);
}

static workbench lay_out(void *scratch, int size)
{
    const size_t slots = table_slots(size);
    uint64_t    *hosts = scratch;
    int         *ints  = (int *)(void *)(hosts + size);

    for (size_t i = 0; i < slots; i++) {
        ints[i] = -1;
    }
    return (workbench){hosts, {ints, slots - 1}, ints + slots, ints + slots + size};
}

/* The slot of a host, or the free one where it belongs. */
static int *slot_of(const workbench *w, uint64_t host)
{
    const uint64_t mixed = host * 0x9e3779b97f4a7c15u;
    size_t         slot  = (size_t)(mixed >> 32 ^ mixed) & w->last.mask;

    while (w->last.ranks[slot] >= 0 && w->hosts[w->last.ranks[slot]] != host) {
        slot = (slot + 1) & w->last.mask;
    }
    return &w->last.ranks[slot];
}

/* The node of each rank, and the ranks of each node. Returns how many nodes there are. */
static int place_ranks(const workbench *w, int size, int divided)
{
    int count = 0;

    for (int r = 0; r < size; r++) {
        int *lowest = slot_of(w, w->hosts[r]);

        if (*lowest < 0 || (divided > 0 && w->counts[w->node_of[*lowest]] == divided)) {
            w->node_of[r]      = count;
            w->counts[count++] = 0;
            *lowest            = r;
        }
        w->node_of[r] = w->node_of[*lowest];
        w->counts[w->node_of[r]]++;
    }
    return count;
}

static void measure_nodes(fsdpi_nodes *nodes, const int *counts, int size)
{
    nodes->largest  = 0;
    nodes->smallest = size;
    nodes->before   = 0;
    for (int m = 0; m < nodes->count; m++) {
        nodes->largest  = counts[m] > nodes->largest ? counts[m] : nodes->largest;
        nodes->smallest = counts[m] < nodes->smallest ? counts[m] : nodes->smallest;
        nodes->before += m < nodes->mine ? counts[m] : 0;
    }
}

void fsdpi_nodes_move(fsdpi_nodes *nodes, int size, void *memory)
{
    nodes->memory = memory;
    fsdpi_roster_move(&nodes->roster, memory);
    fsdpi_host_names_move(&nodes->hosts, (unsigned char *)memory + roster_bytes(size));
}

void fsdpi_nodes_copy(const fsdpi_nodes *nodes, int size, void *to)
{
    const size_t names = nodes->hosts.known ? (size_t)nodes->hosts.bytes * (size_t)nodes->count : 0;

    if (nodes->roster.even == 0) {
        memcpy(to, nodes->memory, fsdpi_roster_bytes(size));
    }
    if (names > 0) {
        memcpy((unsigned char *)to + roster_bytes(size), nodes->hosts.table, names);
    }
}

void fsdpi_nodes_divide(int size, int rank, int divided, void *scratch, void *memory, fsdpi_nodes *nodes)
{
    const workbench w = lay_out(scratch, size);

    nodes->count = place_ranks(&w, size, divided);
    nodes->mine  = w.node_of[rank];
    measure_nodes(nodes, w.counts, size);
    fsdpi_roster_make(&nodes->roster, memory, size, nodes->count, w.node_of, w.counts);
    nodes->hosts = (fsdpi_host_names){0};
    fsdpi_nodes_move(nodes, size, memory);
    nodes->position = fsdpi_position_of(nodes, rank);
    nodes->size     = fsdpi_node_size(nodes, nodes->mine);
}

/* ---- finding -------------------------------------------------------------------------------------------------------- */

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

static bool are_of_several_hosts(const uint64_t *identities, int size)
{
    for (int r = 1; r < size; r++) {
        if (identities[r] >> FOLDER_BITS != identities[0] >> FOLDER_BITS) {
            return true;
        }
    }
    return false;
}

/* Whether every rank has the memory that it needs. MPI's code. */
static int have_memory(MPI_Comm comm, int timeout_s, const void *memory, const void *scratch, bool *have)
{
    int       all  = memory != NULL && scratch != NULL;
    const int code = fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, comm, timeout_s);

    *have = all != 0;
    return code;
}

static fsdp_status find(fsdp_context *ctx, MPI_Comm comm, const char *shm_dir, int divided, int timeout_s,
                        void *scratch, void *memory, fsdpi_nodes *nodes)
{
    const uint64_t mine = identity_of_memory(shm_dir);
    bool           have = false;
    int            rank, size;

    (void)MPI_Comm_rank(comm, &rank);
    (void)MPI_Comm_size(comm, &size);
    FSDPI_TRY_MPI(ctx, have_memory(comm, timeout_s, memory, scratch, &have));
    if (!have || memory == NULL || scratch == NULL) { /* what is NULL here is not there on all ranks */
        return fsdpi_fail(ctx, FSDP_ERR_MEMORY, "no memory for the nodes of %d ranks on at least one of them", size);
    }
    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allgather(&mine, scratch, 1, MPI_UINT64_T, comm, timeout_s));
    fsdpi_nodes_divide(size, rank, divided, scratch, memory, nodes);
    nodes->apart         = count_apart(scratch, rank, size);
    nodes->several_hosts = are_of_several_hosts(scratch, size);
    return FSDP_OK;
}

fsdp_status fsdpi_nodes_find(fsdp_context *ctx, MPI_Comm comm, const char *shm_dir, int divided, int timeout_s,
                             void *memory, fsdpi_nodes *nodes)
{
    int size = 0;

    (void)MPI_Comm_size(comm, &size);
    void             *scratch = malloc(fsdpi_nodes_scratch_bytes(size));
    const fsdp_status status  = find(ctx, comm, shm_dir, divided, timeout_s, scratch, memory, nodes);
    free(scratch);
    return status;
}

fsdp_status fsdpi_nodes_locate(fsdp_context *ctx, MPI_Comm comm, const char *shm_dir, int timeout_s, int *node,
                               int *number)
{
    fsdpi_nodes nodes = {0};
    int         size  = 0;

    (void)MPI_Comm_size(comm, &size);
    void             *memory = malloc(fsdpi_nodes_bytes(size));
    const fsdp_status status = fsdpi_nodes_find(ctx, comm, shm_dir, 0, timeout_s, memory, &nodes);
    *node                    = status == FSDP_OK ? nodes.mine : 0;
    *number                  = status == FSDP_OK ? nodes.before + nodes.position : 0;
    free(memory);
    return status;
}
