/**
 * @file
 * All of libfsdp: collectives at the memory and link limit, and fully sharded training state, for MPI programs.
 */
#ifndef FSDP_FSDP_H
#define FSDP_FSDP_H

#include "fsdp/collectives.h"
#include "fsdp/config.h"
#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/layout.h"
#include "fsdp/lr_schedule.h"
#include "fsdp/model.h"
#include "fsdp/optimizer.h"
#include "fsdp/random.h"
#include "fsdp/sampler.h"
#include "fsdp/status.h"
#include "fsdp/version.h"

#endif
