/**
 * @file
 * What an open checkpoint folder consists of, and how a save goes on from phase to phase.
 *
 * A save is two pieces of work on files, each followed by an agreement of all ranks: every rank writes its runs and their
 * checksums; then rank 0 puts these in order, writes state.json and makes the folder a checkpoint. A piece of work is done at
 * once, or by a thread. The agreements are collectives of the model's context, in calls of the program: so the thread needs no
 * MPI, and the order of collectives is the program's.
 */
#ifndef FSDPI_CHECKPOINT_H
#define FSDPI_CHECKPOINT_H

#include <pthread.h>
#include <stdatomic.h>

#include "fsdp/checkpoint.h"
#include "lib/context/owned.h"
#include "shard/checkpoint/arrays/arrays.h"
#include "shard/checkpoint/cache/cache.h"
#include "shard/checkpoint/folder/run_folder.h"
#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/write/saved_model.h"

typedef enum fsdpi_save_phase { FSDPI_SAVE_IDLE, FSDPI_SAVE_WRITING, FSDPI_SAVE_COMMITTING } fsdpi_save_phase;

struct fsdp_checkpoint {
    fsdp_context           *ctx;
    fsdpi_owned             owned;
    fsdp_checkpoint_options options;
    fsdpi_run_folder        folder;        /* rank 0 alone holds its lock, and knows the stage of a save */
    bool                    told_unsynced; /* that its file system does not sync folders */
    fsdpi_saved_model      *models;        /* whose files come first */
    fsdpi_arrays            arrays;
    size_t                  n_sums;    /* chunks of all ranks, and parts of chunks */
    size_t                  first_sum; /* the first of this rank's among them */
    uint64_t    flushed; /* the step that `latest` names, and 1 more; 0: none, or not known without caches */
    fsdpi_cache cache;
    bool        drops_cache; /* once it is closed */

    /* The save under way. */
    fsdpi_save_phase phase;
    fsdpi_state      state;
    const char      *function; /* the public one that began it */
    bool             asynchronous;
    fsdp_status (*work)(struct fsdp_checkpoint *checkpoint); /* what is done, or has been, in this phase */
    pthread_t     thread;
    bool          has_thread;
    _Atomic bool  done;
    fsdp_status   status;  /* of the work, once it is done */
    fsdpi_problem problem; /* where that is not FSDP_OK */
};

#endif
