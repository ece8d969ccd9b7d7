/**
 * @file
 * Whether nodes have the memory that a model will take.
 */
#ifndef FSDPI_NODE_MEMORY_H
#define FSDPI_NODE_MEMORY_H

#include "fsdp/model.h"

/** FSDP_ERR_MEMORY, on all ranks, where a node has less than its ranks will take between them.
 * Collective. */
fsdp_status fsdpi_node_memory_check(fsdp_model *model);

#endif
