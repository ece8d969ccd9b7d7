/**
 * @file
 * The GPU's kernels as a table like the host's, so that the same tests hold both: each call copies its arrays to the
 * device, launches, waits, and copies them back.
 */
#ifndef FSDP_TESTS_GPU_TABLE_H
#define FSDP_TESTS_GPU_TABLE_H

#include "kernels/kernels.h"

/** Device memory has the alignment of the host's, modulo 16; the bytes around it must not change. */
extern const fsdpi_kernels gpu_table;

#endif
