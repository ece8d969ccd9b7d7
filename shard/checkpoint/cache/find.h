/**
 * @file
 * The newest state of a run that is whole in the caches of all nodes, whichever ranks they are on now.
 */
#ifndef FSDPI_CACHE_FIND_H
#define FSDPI_CACHE_FIND_H

#include "lib/context/context.h"
#include "shard/checkpoint/cache/cache_file.h"

typedef struct fsdpi_cache_found {
    uint64_t            step;    /* of the state; only if `ranks` is not 0 */
    uint64_t            ranks;   /* that have cached it; 0: there is none */
    int                 first;   /* which rank has rank 0's */
    size_t              n;       /* of these, this rank has as many */
    fsdpi_cache_reader *readers; /* open; all their bytes have been checked */
    size_t              n_looked_at;
} fsdpi_cache_found;

/**
 * Looks for a state that is newer than `latest`, of which each rank's part is on some node and good: its own file or the copy of it.
 * Each rank looks at its share of its node's files. What is not of this run, or of a run before somebody went back to an earlier
 * checkpoint, does not count. Collective.
 *
 * @param[in]  nodes   whose ranks have one folder for caches
 * @param[in]  folder  of this node
 * @param[in]  latest  the step that `latest` names, and 1 more; 0: none
 * @param[out] found   closed with fsdpi_cache_found_close(), also after an error
 * @return FSDP_OK, also if there is none; FSDP_ERR_MEMORY, the same on all ranks; or the error of a collective
 */
fsdp_status fsdpi_cache_find(fsdp_context *ctx, const fsdpi_nodes *nodes, const char *function, const char *folder,
                             const char *run, uint64_t latest, fsdpi_cache_found *found);

void fsdpi_cache_found_close(fsdpi_cache_found *found);

/** Removes all files of a run on this node, and the folder. Any number of ranks may do it at once. */
void fsdpi_cache_clear(const char *folder);

#endif
