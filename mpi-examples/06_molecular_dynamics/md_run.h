/**
 * @file
 * A run, from the first atom to the last line: the simulation with training in its gaps, and what the learned potential is worth.
 * All functions are collective, and return FSDP_OK, or the same status on all ranks: then somebody has said why.
 */
#ifndef MD_RUN_H
#define MD_RUN_H

#include "md_atoms.h"
#include "md_coupling.h"
#include "md_report.h"

typedef struct md_run {
    const md_options     *options;
    fsdp_context         *ctx;
    size_t                atoms;
    void                 *lammps;
    md_learner            learner;
    example_checkpoint    checkpoint;
    fsdp_checkpoint_state state; /* `step` are frames trained on */
    md_rows               rows;  /* that are saved */
    md_report             report;
    double                started; /* when what is timed began */
    double                simulation_seconds, training_seconds, reading_seconds;
} md_run;

/** Opens LAMMPS and the model, and goes on from a checkpoint if there is one; otherwise melts the lattice. Close it all the same. */
fsdp_status md_run_open(md_run *run, fsdp_context *ctx, const md_options *options);

/** The simulation, with training on every frame as LAMMPS has it. */
fsdp_status md_run_train(md_run *run);

/** Compares forces on frames that come behind those. */
fsdp_status md_run_test(md_run *run);

/** Lets the learned potential move the atoms, beside LAMMPS's own. */
fsdp_status md_run_drive(md_run *run);

/** Runs `steps` time steps, the first ones behind a change with `setup`. Counts their time. */
fsdp_status md_run_steps(md_run *run, size_t steps, int setup);

void md_run_close(md_run *run);

#endif
