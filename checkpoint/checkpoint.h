/**
 * @file
 * What an open checkpoint folder consists of, and how a save goes on from phase to phase.
 *
 * A save is two pieces of work on files, each followed by an agreement of all ranks: every rank writes its runs; then rank 0
 * writes state.json and makes the folder a checkpoint. A piece of work is done at once, or by a thread. The agreements are
 * collectives of the model's context, in calls of the program: so the thread needs no MPI, and the order of collectives is the
 * program's.
 */
#ifndef FSDPI_CHECKPOINT_H
#define FSDPI_CHECKPOINT_H

#include <pthread.h>
#include <stdatomic.h>

#include "checkpoint/folder.h"
#include "checkpoint/state.h"
#include "checkpoint/writer.h"
#include "fsdp/checkpoint.h"
#include "lib/owned.h"

typedef enum fsdpi_save_phase { FSDPI_SAVE_IDLE, FSDPI_SAVE_WRITING, FSDPI_SAVE_COMMITTING } fsdpi_save_phase;

struct fsdp_checkpoint {
    fsdp_context           *ctx;
    fsdp_model             *model;
    fsdp_optimizer         *optimizer; /* NULL: none */
    fsdpi_owned             owned;
    fsdp_checkpoint_options options;
    char                    folder[FSDP_CHECKPOINT_PATH_BYTES];
    int                     lock; /* rank 0's; -1 */
    fsdpi_stem              stems[FSDPI_N_STEMS];
    fsdpi_writer            writer;
    size_t                 *counts; /* of each rank's chunks, in 64 bit words */
    fsdpi_file_chunk       *sums;   /* of all ranks, one after the other */
    size_t                  n_sums;

    /* The save under way. */
    fsdpi_save_phase phase;
    fsdpi_state      state;
    char             partial[FSDPI_FOLDER_NAME_BYTES], name[FSDPI_FOLDER_NAME_BYTES];
    const char      *function; /* the public one that began it */
    bool             asynchronous;
    fsdp_status (*work)(struct fsdp_checkpoint *checkpoint); /* what is done, or has been, in this phase */
    pthread_t     thread;
    bool          has_thread;
    _Atomic bool  done;
    fsdp_status   status;  /* of the work, once it is done */
    fsdpi_problem problem; /* where that is not FSDP_OK */
};

/** "FOLDER/NAME" of the partial folder, into FSDPI_FOLDER_PATH_BYTES. */
void fsdpi_checkpoint_partial_path(const fsdp_checkpoint *checkpoint, char *path);

/** Begins a piece of work. Ends it at once unless the save is asynchronous. */
void fsdpi_work_start(fsdp_checkpoint *checkpoint, fsdp_status (*work)(fsdp_checkpoint *checkpoint));

/** Waits for it. */
void fsdpi_work_join(fsdp_checkpoint *checkpoint);

/** Rank 0's second piece of work: from the sums of all ranks to the latest checkpoint. */
fsdp_status fsdpi_checkpoint_commit(fsdp_checkpoint *checkpoint);

/** Fails with what is wrong with a file: records and prints it. */
fsdp_status fsdpi_fail_problem(fsdp_context *ctx, const char *function, const fsdpi_problem *problem);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the state of a model cannot be saved or loaded now. */
fsdp_status fsdpi_check_at_step_end(fsdp_model *model, const char *function);

/** FSDP_ERR_ARG, recorded and printed, where a path is missing or too long, or an optimizer another model's. */
fsdp_status fsdpi_check_path(fsdp_context *ctx, const char *function, const char *path);
fsdp_status fsdpi_check_optimizer(const fsdp_model *model, const char *function, const fsdp_optimizer *optimizer);

#endif
