#include "md_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"

enum {
    LINES     = 10, /* of progress, in all */
    TEST_GAPS = 5   /* intervals from one test frame to the next */
};

/* What LAMMPS returns. */
static fsdp_status status_of(int failed)
{
    return failed ? FSDP_ERR_STATE : FSDP_OK;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

/* All that changes what is computed, but for the number of ranks and what is divided over them, which may change. */
static void describe(const md_options *o, char *text, size_t size)
{
    const md_system   *s = &o->system;
    const md_training *t = &o->training;

    (void)snprintf(
        text, size,
        "%zu atoms, density %.9g, temperature %.9g, time step %.9g, %zu frames every %zu behind %zu, %zu updates on "
        "%zu parts, rate %.9g after %zu, decay %.9g, seed %zu",
        md_system_atoms(s), s->density, s->temperature, s->timestep, t->frames, o->interval, o->equilibrate, t->updates,
        t->batches, t->lr, t->warmup, t->weight_decay, t->seed);
}

static uint64_t time_step_of(const md_run *run, uint64_t frames)
{
    return run->options->equilibrate + frames * run->options->interval;
}

static fsdp_status melt(md_run *run)
{
    double     *scratch = malloc(7 * run->atoms * sizeof *scratch);
    fsdp_status status =
        example_agree(run->ctx, scratch ? "" : "no memory for the atoms of all ranks; use fewer --cells");

    if (status == FSDP_OK) {
        status = status_of(md_lammps_melt(run->lammps, &run->options->system, scratch) != 0 ||
                           md_lammps_command(run->lammps, "run %zu post no", run->options->equilibrate) != 0);
    }
    free(scratch);
    return status;
}

static fsdp_status begin(md_run *run)
{
    const md_source source = {.checkpoint = run->checkpoint.saver};

    if (run->state.step == 0) {
        return melt(run);
    }
    return md_coupling_seat(run->lammps, &source, run->ctx, run->atoms, time_step_of(run, run->state.step));
}

fsdp_status md_run_open(md_run *run, fsdp_context *ctx, const md_options *options)
{
    const example_node node = example_node_of(MPI_COMM_WORLD);

    *run            = (md_run){.options = options, .ctx = ctx, .atoms = md_system_atoms(&options->system)};
    run->state.seed = options->training.seed;
    describe(options, run->state.text, sizeof run->state.text);
    EXAMPLE_TRY(md_learner_open(ctx, &options->training, &run->learner));
    EXAMPLE_TRY(example_agree(ctx, md_lammps_open(MPI_COMM_WORLD, &options->system, MD_REFERENCE, &run->lammps) != 0
                                       ? "LAMMPS could not be opened; is its library whole?"
                                       : ""));
    md_report_open(&run->report, ctx, options);
    md_report_header(&run->report, ctx, md_lammps_version(run->lammps), &node);
    EXAMPLE_TRY(example_checkpoint_open_with(&run->checkpoint, &options->checkpoint, run->learner.model,
                                             run->learner.optimizer, ctx, &run->state, &run->learner.budget,
                                             md_atoms_add));
    md_report_budget(&run->report, &run->learner.budget);
    return begin(run);
}

void md_run_close(md_run *run)
{
    fsdp_checkpoint_close(run->checkpoint.saver); /* still open only where something has failed */
    md_lammps_close(run->lammps);
    md_learner_close(&run->learner);
    free(run->rows.ids);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

fsdp_status md_run_steps(md_run *run, size_t steps, int setup)
{
    const double started = example_now();
    const int    failed  = md_lammps_command(run->lammps, "run %zu post no%s", steps, setup ? "" : " pre no");

    run->simulation_seconds += example_now() - started;
    return status_of(failed);
}

static fsdp_status report(md_run *run, size_t frames, double loss)
{
    const size_t all = run->options->training.frames, between = all > LINES ? all / LINES : 1;
    md_thermo    thermo;

    if (run->options->exact) {
        md_report_exact_loss(&run->report, frames, loss);
    }
    if (frames % between == 0 || frames == all) {
        EXAMPLE_TRY(status_of(md_lammps_thermo(run->lammps, run->atoms, &thermo)));
        md_report_frame(&run->report, frames, loss, &thermo);
    }
    example_bar_draw(&run->report.bar, frames, all);
    return isfinite(loss) ? FSDP_OK
                          : example_fail("the loss of frame %zu is not finite; use an --lr below %g", frames,
                                         run->options->training.lr);
}

/* Behind a save, atoms are put back as a load would: whether a run goes on or begins again there, it gives the same bits. */
static fsdp_status save(md_run *run, const md_frame *frame, int *setup)
{
    const md_source source = {.lammps = run->lammps};

    if (!run->checkpoint.saver) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(md_atoms_set(run->ctx, run->checkpoint.saver, frame, &run->rows));
    EXAMPLE_TRY(
        example_checkpoint_step(&run->checkpoint, &run->state, run->state.step == run->options->training.frames));
    if (run->checkpoint.saved) {
        *setup = 1;
        EXAMPLE_TRY(md_coupling_seat(run->lammps, &source, run->ctx, run->atoms, time_step_of(run, run->state.step)));
    }
    return FSDP_OK;
}

fsdp_status md_run_train(md_run *run)
{
    int    setup = 1;
    double loss, started;

    while (run->state.step < run->options->training.frames && !run->checkpoint.stopped) {
        md_frame frame;

        EXAMPLE_TRY(md_run_steps(run, run->options->interval, setup));
        setup   = 0;
        started = example_now();
        frame   = md_coupling_frame(run->lammps);
        EXAMPLE_TRY(md_learner_train(&run->learner, &frame, run->state.step++, &loss));
        run->training_seconds += example_now() - started;
        EXAMPLE_TRY(report(run, run->state.step, loss));
        EXAMPLE_TRY(save(run, &frame, &setup));
    }
    return example_checkpoint_close(&run->checkpoint);
}

/* ---- what it is worth -------------------------------------------------------------------------------------------- */

fsdp_status md_run_test(md_run *run)
{
    const size_t steps   = TEST_GAPS * run->options->interval;
    double       sums[2] = {0};
    size_t       i;

    if (run->options->test_frames == 0) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(md_learner_fetch(&run->learner));
    EXAMPLE_TRY(status_of(md_lammps_command(run->lammps, "%s", md_lammps_far_ghosts)));
    for (i = 0; i < run->options->test_frames; i++) {
        md_frame frame;

        EXAMPLE_TRY(status_of(md_lammps_command(run->lammps, "run %zu post no%s", steps, i ? " pre no" : "")));
        frame = md_coupling_frame(run->lammps);
        EXAMPLE_TRY(md_learner_compare(&run->learner, &frame, sums));
    }
    md_report_forces(&run->report, run->options->test_frames, sums);
    if (run->options->exact) {
        md_report_exact_values(&run->report, "forces", sums[0], sums[1]);
    }
    return FSDP_OK;
}

/* Some time steps of both. */
static fsdp_status drive(md_run *run, const md_driver *driver, size_t steps, int setup, md_thermo thermo[2])
{
    void *const both[2] = {run->lammps, driver->lammps};
    size_t      i;

    for (i = 0; i < 2; i++) {
        EXAMPLE_TRY(status_of(md_lammps_command(both[i], "run %zu post no%s", steps, setup ? "" : " pre no")));
        EXAMPLE_TRY(driver->status);
        EXAMPLE_TRY(status_of(md_lammps_thermo(both[i], run->atoms, &thermo[i])));
    }
    return FSDP_OK;
}

static fsdp_status drive_all(md_run *run, md_driver *driver)
{
    const md_source source = {.lammps = run->lammps};
    const size_t    all = run->options->drive, block = all > LINES ? all / LINES : 1;
    md_thermo       begin[2], now[2]                 = {{0}};
    size_t          step, steps;

    EXAMPLE_TRY(md_coupling_seat(driver->lammps, &source, run->ctx, run->atoms, 0));
    EXAMPLE_TRY(md_coupling_seat(run->lammps, &source, run->ctx, run->atoms, 0));
    md_coupling_drive(driver);
    EXAMPLE_TRY(drive(run, driver, 0, 1, begin));
    md_report_dynamics(&run->report, 0, begin, begin);
    for (step = 0; step < all; step += steps) {
        steps = all - step < 2 * block ? all - step : block; /* the last block has the rest */
        EXAMPLE_TRY(drive(run, driver, steps, 0, now));
        md_report_dynamics(&run->report, step + steps, now, begin);
    }
    if (run->options->exact) {
        md_report_exact_values(&run->report, "energies", now[0].energy, now[1].energy);
    }
    return FSDP_OK;
}

fsdp_status md_run_drive(md_run *run)
{
    md_driver   driver = {.learner = &run->learner};
    fsdp_status status;

    if (run->options->drive == 0) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(md_learner_fetch(&run->learner));
    EXAMPLE_TRY(status_of(md_lammps_open(MPI_COMM_WORLD, &run->options->system, MD_LEARNED, &driver.lammps)));
    status = drive_all(run, &driver);
    md_lammps_close(driver.lammps);
    return status;
}
