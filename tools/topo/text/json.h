/**
 * @file
 * A node and its ranks as JSON.
 */
#ifndef TOPO_JSON_H
#define TOPO_JSON_H

#include <stdio.h>

#include "tools/topo/report/collect.h"

/** A topo_writer: one object. */
void topo_json_write(FILE *file, const topo_report *report, size_t index);

/** The document that holds the objects of all nodes. */
void topo_json_document(FILE *file, const topo_texts *nodes);

#endif
