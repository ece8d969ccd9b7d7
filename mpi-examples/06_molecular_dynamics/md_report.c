#include "md_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "mpi-examples/common/example_report.h"

void md_report_open(md_report *report, const fsdp_context *ctx, const md_options *options)
{
    report->speaks  = fsdp_rank(ctx) == 0;
    report->options = options;
    report->atoms   = md_system_atoms(&options->system);
    example_bar_open(&report->bar, ctx, (example_progress)options->progress);
}

void md_report_header(const md_report *report, const fsdp_context *ctx, int lammps_version, const example_node *node)
{
    const md_options  *o = report->options;
    const md_training *t = &o->training;

    if (!report->speaks) {
        return;
    }
    printf("model       %zu parameters: %d radial functions within %g, two layers of %d\n", md_learner_parameters(),
           MD_FUNCTIONS, MD_CUTOFF, MD_HIDDEN);
    printf("ranks       %d, %s", fsdp_size(ctx), fsdp_strategy_name(t->strategy));
    example_print_node(node, 0);
    printf("atoms       %zu of a Lennard-Jones liquid, density %g, in a box of %.2f; time step %g; LAMMPS %d\n",
           report->atoms, o->system.density, md_system_edge(&o->system), o->system.timestep, lammps_version);
    printf("training    %zu frames, one every %zu time steps behind %zu; %zu updates each, on 1 of %zu parts of the "
           "atoms; "
           "learning rate %g, warm-up %zu, seed %zu\n",
           t->frames, o->interval, o->equilibrate, t->updates, t->batches, t->lr, t->warmup, t->seed);
    (void)fflush(stdout);
}

void md_report_budget(const md_report *report, const fsdp_budget *budget)
{
    if (report->speaks) {
        example_print_budget(budget, 1, NULL);
    }
}

void md_report_frame(const md_report *report, size_t frame, double loss, const md_thermo *thermo)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    printf("frame %4zu | energy %.6f | temperature %.4f | loss %.6f\n", frame, thermo->energy, thermo->temperature,
           loss);
    (void)fflush(stdout);
}

void md_report_forces(const md_report *report, size_t frames, const double sums[2])
{
    if (!report->speaks) {
        return;
    }
    printf("\nforces on %zu frames not trained on: RMS error %.4f of RMS %.4f, which is %.4f\n", frames,
           sqrt(sums[0] / (3 * (double)report->atoms * (double)frames)),
           sqrt(sums[1] / (3 * (double)report->atoms * (double)frames)), sqrt(sums[0] / sums[1]));
    (void)fflush(stdout);
}

void md_report_dynamics(const md_report *report, size_t step, const md_thermo now[2], const md_thermo begin[2])
{
    if (!report->speaks) {
        return;
    }
    if (step == 0) {
        printf("\nfrom the same atoms            LAMMPS      the learned potential\n"
               " time step      energy  temperature      energy  temperature\n");
    }
    printf("%10zu  %10.6f  %11.4f  %10.6f  %11.4f\n", step, now[0].energy, now[0].temperature, now[1].energy,
           now[1].temperature);
    if (step == report->options->drive) {
        printf("     drift  %+10.6f  %11s  %+10.6f\n", now[0].energy - begin[0].energy, "",
               now[1].energy - begin[1].energy);
    }
    (void)fflush(stdout);
}

void md_report_seconds(const md_report *report, double simulation, double training, double reading, double all)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    printf("\nseconds     simulation %.3f, training %.3f, reading %.3f; in all %.3f\n", simulation, training, reading,
           all);
    (void)fflush(stdout);
}

void md_report_exact_loss(const md_report *report, size_t frame, double loss)
{
    if (report->speaks) {
        example_bar_clear(&report->bar);
        example_print_exact_loss(frame, loss);
    }
}

void md_report_exact_state(const md_report *report, uint64_t atoms, uint64_t parameters)
{
    if (report->speaks) {
        printf("exact atoms %016" PRIx64 "\n", atoms);
        example_print_exact_hash(parameters);
    }
}

void md_report_exact_values(const md_report *report, const char *what, double first, double second)
{
    if (report->speaks) {
        printf("exact %s %a %a\n", what, first, second);
    }
}
