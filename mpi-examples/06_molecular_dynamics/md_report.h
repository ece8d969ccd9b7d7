/**
 * @file
 * What rank 0 prints. All functions print nothing on other ranks, and are local.
 */
#ifndef MD_REPORT_H
#define MD_REPORT_H

#include "md_options.h"
#include "mpi-examples/common/example_bar.h"
#include "mpi-examples/common/example_node.h"

typedef struct md_report {
    int               speaks; /* this is rank 0 */
    const md_options *options;
    size_t            atoms;
    example_bar       bar;
} md_report;

void md_report_open(md_report *report, const fsdp_context *ctx, const md_options *options);

/** Model, ranks, atoms, training. */
void md_report_header(const md_report *report, const fsdp_context *ctx, int lammps_version, const example_node *node);

/** The lines of the budget of one rank. */
void md_report_budget(const md_report *report, const fsdp_budget *budget);

/** Removes the bar and prints the line of a frame, which is counted from 1. */
void md_report_frame(const md_report *report, size_t frame, double loss, const md_thermo *thermo);

/** The error of forces, and the forces: sums of squares over `frames` frames. */
void md_report_forces(const md_report *report, size_t frames, const double sums[2]);

/** A line of the two dynamics, behind a heading at `step` 0, and with the change of energy since then at the last. */
void md_report_dynamics(const md_report *report, size_t step, const md_thermo now[2], const md_thermo begin[2]);

/** Seconds of the simulation, with what it writes; of training; of reading; and from the beginning to the end of all this. */
void md_report_seconds(const md_report *report, double simulation, double training, double reading, double all);

/** To the last bit: a frame's loss; hashes of atoms and parameters; what the comparisons gave. */
void md_report_exact_loss(const md_report *report, size_t frame, double loss);
void md_report_exact_state(const md_report *report, uint64_t atoms, uint64_t parameters);
void md_report_exact_values(const md_report *report, const char *what, double first, double second);

#endif
