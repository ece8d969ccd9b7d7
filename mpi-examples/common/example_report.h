/**
 * @file
 * What rank 0 of every example prints alike. Local; the others are not to call.
 */
#ifndef EXAMPLE_REPORT_H
#define EXAMPLE_REPORT_H

#include <fsdp/fsdp.h>

#include "example_node.h"

/** The end of the line of the ranks: who shares the cores of this node. */
void example_print_node(const example_node *node, size_t blas_threads);

/**
 * The lines of the budget of each of `ranks` ranks.
 * @param[in] alone  beside them those of a rank on its own; NULL: none
 */
void example_print_budget(const fsdp_budget *budget, int ranks, const fsdp_budget *alone);

/** What the library holds and held, beside what the budget said. */
void example_print_memory(const fsdp_memory *memory, const fsdp_budget *budget);

/** One step's loss, and a hash of all parameters, to the last bit. */
void example_print_exact_loss(size_t step, double loss);
void example_print_exact_hash(uint64_t hash);

#endif
