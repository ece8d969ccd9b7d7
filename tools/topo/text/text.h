/**
 * @file
 * A node and its ranks as text.
 */
#ifndef TOPO_TEXT_H
#define TOPO_TEXT_H

#include <stdio.h>

#include "tools/topo/report/report.h"

/** A topo_writer. */
void topo_text_write(FILE *file, const topo_report *report, size_t index);

#endif
