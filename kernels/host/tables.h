/**
 * @file
 * The tables for host memory beside the scalar one. Which of them are built and run: fsdpi_kernels_find().
 */
#ifndef FSDPI_KERNELS_HOST_TABLES_H
#define FSDPI_KERNELS_HOST_TABLES_H

#include "kernels/kernels.h"

extern const fsdpi_kernels fsdpi_kernels_avx2;
extern const fsdpi_kernels fsdpi_kernels_avx512;
extern const fsdpi_kernels fsdpi_kernels_neon;

#endif
