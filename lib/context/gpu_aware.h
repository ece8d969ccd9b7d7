/**
 * @file
 * Whether MPI takes pointers to GPU memory. One that does not would read them as if they led to host memory, so it is asked
 * and never tried.
 */
#ifndef FSDPI_GPU_AWARE_H
#define FSDPI_GPU_AWARE_H

#include "fsdp/context.h"

/** Sets ctx->gpu.aware, the same on all ranks: where all of them may. Collective over the context, which uses a GPU. */
fsdp_status fsdpi_gpu_ask_mpi(fsdp_context *ctx);

#endif
