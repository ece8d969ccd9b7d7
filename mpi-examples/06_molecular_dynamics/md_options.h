/**
 * @file
 * The command line.
 */
#ifndef MD_OPTIONS_H
#define MD_OPTIONS_H

#include "md_lammps.h"
#include "md_learner.h"
#include "mpi-examples/common/example_checkpoint.h"

/** What a run does; all but the first are there to be compared with it. */
typedef enum md_mode {
    MD_BOTH,  /* training in the gaps between time steps */
    MD_ALONE, /* only the simulation */
    MD_TRAIN, /* only training, on frames that are kept in memory; the simulation before it does not count */
    MD_DUMP   /* the simulation with LAMMPS's own dump into a file, then training on what is read from it */
} md_mode;

typedef struct md_options {
    int                        mode; /* md_mode */
    md_system                  system;
    md_training                training;
    size_t                     equilibrate; /* time steps before the first frame */
    size_t                     interval;    /* time steps from frame to frame */
    size_t                     test_frames; /* behind the training */
    size_t                     drive;       /* time steps of the learned potential */
    const char                *dump_file;
    example_checkpoint_options checkpoint;
    int                        progress; /* example_progress */
    int                        exact, help;
} md_options;

/**
 * Reads the command line, which is the same on all ranks. Local.
 * @param[in] ranks  how many there are
 * @return FSDP_OK; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status md_options_read(int argc, char **argv, int ranks, md_options *options);

/** Prints what the options are, and their defaults. Local. */
void md_options_help(void);

#endif
