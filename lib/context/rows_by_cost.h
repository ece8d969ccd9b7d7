/**
 * @file
 * The rows of the table for several nodes, as they follow from costs: each ends where another algorithm costs less.
 */
#ifndef FSDPI_ROWS_BY_COST_H
#define FSDPI_ROWS_BY_COST_H

#include <stdio.h>

#include "lib/context/costs.h"
#include "lib/context/row.h"

/** At most `most` rows. @return how many */
size_t fsdpi_rows_by_cost(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_row *rows, size_t most);

/** Why: the costs of each algorithm for some sizes, as comments. */
void fsdpi_costs_print(const fsdpi_costs *costs, const fsdpi_world *world, FILE *file);

#endif
