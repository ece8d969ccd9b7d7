#include "md_compare.h"

#include <stdio.h>

#include "md_frames.h"
#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"

static fsdp_status train_on(md_run *run, const md_frame *frame, size_t number)
{
    const double started = example_now();
    double       loss;

    EXAMPLE_TRY(md_learner_train(&run->learner, frame, number, &loss));
    run->training_seconds += example_now() - started;
    return FSDP_OK;
}

static fsdp_status simulate_all(md_run *run)
{
    return md_run_steps(run, run->options->training.frames * run->options->interval, 1);
}

/* ---- training alone ---------------------------------------------------------------------------------------------- */

static fsdp_status keep_all(md_run *run, md_kept *kept)
{
    size_t i;

    for (i = 0; i < run->options->training.frames; i++) {
        md_frame frame;

        EXAMPLE_TRY(md_run_steps(run, run->options->interval, i == 0));
        frame = md_coupling_frame(run->lammps);
        EXAMPLE_TRY(
            example_agree(run->ctx, md_kept_add(kept, &frame) != 0 ? "no memory for all frames; use fewer" : ""));
    }
    run->simulation_seconds = 0; /* this is about training */
    run->started            = example_now();
    return FSDP_OK;
}

static fsdp_status train_alone(md_run *run)
{
    md_kept     kept   = {0};
    fsdp_status status = keep_all(run, &kept);
    size_t      i;

    for (i = 0; i < kept.n && status == FSDP_OK; i++) {
        status = train_on(run, &kept.frames[i], i);
    }
    md_kept_release(&kept);
    return status;
}

/* ---- through a file ---------------------------------------------------------------------------------------------- */

/* As LAMMPS writes frames by itself. */
static fsdp_status write_all(md_run *run)
{
    const int failed = md_lammps_command(run->lammps,
                                         "dump frames all custom %zu \"%s\" id x y z c_energy\n"
                                         "dump_modify frames sort id every %zu\n",
                                         run->options->interval, run->options->dump_file, run->options->interval) != 0;

    EXAMPLE_TRY(failed ? FSDP_ERR_STATE : FSDP_OK);
    EXAMPLE_TRY(simulate_all(run));
    return md_lammps_command(run->lammps, "undump frames") != 0 ? FSDP_ERR_STATE : FSDP_OK;
}

static fsdp_status read_all(md_run *run, md_dump *dump)
{
    const size_t frames  = run->options->training.frames;
    double       started = example_now();
    md_frame     frame;
    size_t       i;

    EXAMPLE_TRY(
        md_dump_open(run->ctx, run->options->dump_file, run->atoms, md_system_edge(&run->options->system), dump));
    if (run->options->equilibrate % run->options->interval == 0) {
        EXAMPLE_TRY(md_dump_read(dump, &frame)); /* of the time step before the first interval */
    }
    for (i = 0; i < frames; i++, started = example_now()) {
        EXAMPLE_TRY(md_dump_read(dump, &frame));
        run->reading_seconds += example_now() - started;
        EXAMPLE_TRY(train_on(run, &frame, i));
    }
    return FSDP_OK;
}

static fsdp_status train_from_file(md_run *run)
{
    fsdp_status status = write_all(run);
    md_dump     dump   = {0};

    if (status == FSDP_OK) {
        status = read_all(run, &dump);
    }
    md_dump_close(&dump);
    if (fsdp_rank(run->ctx) == 0) {
        (void)remove(run->options->dump_file);
    }
    return status;
}

fsdp_status md_compare_train(md_run *run)
{
    switch ((md_mode)run->options->mode) {
    case MD_ALONE:
        return simulate_all(run);
    case MD_TRAIN:
        return train_alone(run);
    case MD_DUMP:
        return train_from_file(run);
    case MD_BOTH:
        break;
    }
    return FSDP_ERR_ARG;
}
