/**
 * @file
 * A node and its ranks as text.
 */
#ifndef TOPO_TEXT_H
#define TOPO_TEXT_H

#include <stdio.h>

#include "tools/topo/report/report.h"

/** A topo_writer; ranks with like reasons are put together. */
void topo_text_write(FILE *file, const topo_report *report, size_t index);

/** A topo_writer; the reasons of each rank. */
void topo_text_write_why(FILE *file, const topo_report *report, size_t index);

#endif
