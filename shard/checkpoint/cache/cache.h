/**
 * @file
 * The caches of a run on one rank: two generations of its own state, on its node, and two of each rank whose partner it is. The
 * ranks of node i send theirs to those of node i + 1, at the same position, behind the steps that follow; the last node's to the
 * first's. With one node there is no partner. A node is, here, the ranks of a host that have one folder for caches, whatever
 * FSDP_NODE_SIZE says: a copy on the same host would be lost with it.
 *
 * A generation is begun once the one before it is whole on all ranks, and takes the place of the one before that: so whenever a
 * run is killed, one of the two is whole. It is whole on a rank when a thread, which calls no MPI, has summed it up, when the
 * partner has it, and when those whose partner it is have sent theirs.
 */
#ifndef FSDPI_CACHE_H
#define FSDPI_CACHE_H

#include <pthread.h>

#include "shard/checkpoint/cache/cache_file.h"
#include "shard/checkpoint/cache/delivery.h"

enum { FSDPI_CACHE_SLOTS = 2 };

/** What a rank caches for another one. */
typedef struct fsdpi_cache_copy {
    int              rank;
    uint64_t         bytes; /* of its files */
    bool             whole; /* of this generation */
    fsdpi_cache_file slots[FSDPI_CACHE_SLOTS];
    fsdpi_cache_head came;
    fsdpi_delivery   delivery;
} fsdpi_cache_copy;

/** Zeros: there is none. */
typedef struct fsdpi_cache {
    fsdp_context     *ctx;
    fsdpi_nodes       nodes;
    void             *nodes_memory;                    /* of theirs */
    char              folder[FSDPI_FOLDER_PATH_BYTES]; /* of this node */
    char              run[FSDPI_CACHE_ID_BYTES], attempt[FSDPI_CACHE_ID_BYTES];
    bool              in_memory; /* and so counted */
    size_t            counted;   /* BYTES */
    MPI_Comm          comm;
    int               partner; /* -1: none */
    fsdpi_cache_file  own[FSDPI_CACHE_SLOTS];
    size_t            n_copies;
    fsdpi_cache_copy *copies;
    fsdpi_delivery    out;

    uint64_t     generation; /* the last one that was begun; 0: none */
    uint64_t     step;       /* that it is of */
    bool         under_way;
    uint64_t     calls, expected; /* of fsdpi_cache_advance() for this one, and for the one before it */
    pthread_t    thread;
    bool         has_thread;
    _Atomic bool sealed; /* the own file of this generation */
} fsdpi_cache;

/** What a rank is about to cache. */
typedef struct fsdpi_cache_sizes {
    size_t image_bytes, n_chunks, meta_bytes;
} fsdpi_cache_sizes;

/** Finds the nodes, by FSDP_CHECKPOINT_CACHE of each rank. Collective. From now on the cache is to be closed. */
fsdp_status fsdpi_cache_locate(fsdpi_cache *cache, fsdp_context *ctx);

/**
 * Opens the caches, which have been located, in an empty folder of this node. Collective; returns an error that is the same on all ranks, recorded.
 * @param[in] folder   as fsdpi_cache_folder_name() has made it
 * @param[in] run      which folder of checkpoints it is for
 * @param[in] attempt  this program's
 */
fsdp_status fsdpi_cache_open(fsdpi_cache *cache, const char *folder, const char *run, const char *attempt,
                             const char *function);

/** Whether files of this rank are too short for this. Local. */
bool fsdpi_cache_must_grow(const fsdpi_cache *cache, const fsdpi_cache_sizes *sizes);

/**
 * Reserves files for it here, and where copies of it will be. Collective. Nothing is under way. What is in them stays.
 * FSDP_ERR_IO, FSDP_ERR_MEMORY: the same on all ranks.
 */
fsdp_status fsdpi_cache_reserve(fsdpi_cache *cache, const fsdpi_cache_sizes *sizes, const char *function);

/**
 * Begins a generation: the file to write image, chunks (but for the sums of those that are in the image) and meta into, of which
 * the head is filled in. Local; the one before is whole on all ranks.
 */
const fsdpi_cache_file *fsdpi_cache_begin(fsdpi_cache *cache, const fsdpi_cache_sizes *sizes, uint64_t step,
                                          uint64_t base);

/** What was begun could not be written; the next one takes its place. */
void fsdpi_cache_give_up(fsdpi_cache *cache);

/** What was begun has been written: from now on it is summed up and goes to the partner. */
void fsdpi_cache_written(fsdpi_cache *cache);

/** Goes on with that without waiting; once per step. Local. */
fsdp_status fsdpi_cache_advance(fsdpi_cache *cache);

/** Ends it: here, and for those that this rank sends to or has from. */
fsdp_status fsdpi_cache_complete(fsdpi_cache *cache);

/** BYTES of memory that the files take, as the budget counts them. */
size_t fsdpi_cache_staging(const fsdpi_cache *cache);
size_t fsdpi_cache_bookkeeping(const fsdpi_cache *cache);

/** Releases everything. @param[in] keep  whether the files stay, for the next attempt */
void fsdpi_cache_close(fsdpi_cache *cache, bool keep);

#endif
