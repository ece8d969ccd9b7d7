/**
 * @file
 * All of libfsdp: collectives at the memory and link limit, and fully sharded training state, for MPI programs.
 */
#ifndef FSDP_FSDP_H
#define FSDP_FSDP_H

#include "fsdp/algorithms.h"
#include "fsdp/batch_norm.h"
#include "fsdp/buffer.h"
#include "fsdp/cast.h"
#include "fsdp/checkpoint.h"
#include "fsdp/collectives.h"
#include "fsdp/config.h"
#include "fsdp/context.h"
#include "fsdp/device.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/gradients.h"
#include "fsdp/grouping.h"
#include "fsdp/hook.h"
#include "fsdp/layout.h"
#include "fsdp/lbfgs.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/lr_schedule.h"
#include "fsdp/mesh.h"
#include "fsdp/model.h"
#include "fsdp/mpi_header.h"
#include "fsdp/optimizer.h"
#include "fsdp/pipeline.h"
#include "fsdp/random.h"
#include "fsdp/sampler.h"
#include "fsdp/shard.h"
#include "fsdp/status.h"
#include "fsdp/stop.h"
#include "fsdp/tensor_io.h"
#include "fsdp/tensor_parallel.h"
#include "fsdp/topology.h"
#include "fsdp/version.h"

#endif
