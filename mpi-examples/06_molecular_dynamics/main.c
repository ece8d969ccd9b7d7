/*
 * Step 6: a simulation that nobody here wrote, LAMMPS, and a potential that learns from its atoms while it runs, in one program on the
 * same ranks. What to learn here is in md_coupling.c: training on arrays that are another program's; forces that are handed to
 * it; and in md_atoms.c, a checkpoint with its atoms, from which another number of ranks goes on with both.
 *
 *     mpirun -n 2 06_molecular_dynamics                       (Debian: apt-get install liblammps-dev)
 *     mpirun -n 4 06_molecular_dynamics --checkpoint run1     and again, with -n 2, if that was stopped
 *
 * When not to do it this way: a potential worth publishing is trained on energies of quantum mechanics, which take so long that a file
 * in between costs nothing; and 1633 parameters need no sharding.
 */
#include <stdlib.h>

#include "md_compare.h"
#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"

static fsdp_status report_state(md_run *run)
{
    uint64_t    parameters, atoms = 0;
    double     *all    = malloc(3 * run->atoms * sizeof *all);
    fsdp_status status = example_agree(run->ctx, all ? "" : "no memory for the atoms of all ranks; use fewer --cells");

    if (status == FSDP_OK && md_lammps_hash(run->lammps, run->atoms, all, &atoms) != 0) {
        status = FSDP_ERR_STATE;
    }
    free(all);
    EXAMPLE_TRY(status);
    EXAMPLE_TRY(fsdp_model_hash(run->learner.model, &parameters));
    md_report_exact_state(&run->report, atoms, parameters);
    return FSDP_OK;
}

static fsdp_status run_all(md_run *run)
{
    const md_mode mode = (md_mode)run->options->mode;

    run->started = example_now();
    EXAMPLE_TRY(mode == MD_BOTH ? md_run_train(run) : md_compare_train(run));
    md_report_seconds(&run->report, run->simulation_seconds, run->training_seconds, run->reading_seconds,
                      example_now() - run->started);
    if (run->checkpoint.stopped || mode == MD_ALONE) {
        return FSDP_OK;
    }
    if (run->options->exact) {
        EXAMPLE_TRY(report_state(run));
    }
    EXAMPLE_TRY(md_run_test(run));
    return md_run_drive(run);
}

static fsdp_status run_in_context(const md_options *options, int *stopped)
{
    fsdp_context *ctx;
    fsdp_status   status;
    md_run        run;

    EXAMPLE_TRY(fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    status = md_run_open(&run, ctx, options);
    if (status == FSDP_OK) {
        status = run_all(&run);
    }
    *stopped = run.checkpoint.stopped;
    md_run_close(&run);
    if (fsdp_finalize(ctx) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    return status;
}

int main(int argc, char **argv)
{
    md_options  options;
    fsdp_status status;
    int         stopped = 0, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    status = md_options_read(argc, argv, ranks, &options);
    if (status == FSDP_OK && !options.help) {
        status = run_in_context(&options, &stopped);
    } else if (status == FSDP_OK && example_speaks()) {
        md_options_help();
    }
    MPI_Finalize();
    return example_exit_status(status, stopped);
}
