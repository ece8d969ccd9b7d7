/**
 * @file
 * The ranks of a node as text: a table, then what is wrong, then what would be better, then the reasons: rank by rank if
 * `all_reasons`.
 */
#ifndef TOPO_RANKS_H
#define TOPO_RANKS_H

#include <stdio.h>

#include "tools/topo/report/report.h"

void topo_text_ranks(FILE *file, const topo_report *report, int all_reasons);

#endif
