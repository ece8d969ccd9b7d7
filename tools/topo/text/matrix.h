/**
 * @file
 * How near GPUs and network cards are to each other, as a table.
 */
#ifndef TOPO_MATRIX_H
#define TOPO_MATRIX_H

#include <stdio.h>

#include <fsdp/fsdp.h>

/** GPUs x GPUs and network cards, in the manner of `nvidia-smi topo -m`, with what the words mean. Nothing without GPUs. */
void topo_matrix_write(FILE *file, const fsdp_node *node);

#endif
