/**
 * @file
 * What each rank keeps of gathered views between the ranks of its node (fsdp_model_options.keep_on_node): how much, which depends
 * on the node. Nodes may have different numbers of ranks; on a small one each keeps more.
 */
#ifndef FSDPI_NODE_PART_H
#define FSDPI_NODE_PART_H

#include <stddef.h>

#include "shard/state/model.h"

/**
 * BYTES that the plan's rank keeps of a view of so many BYTES, of one flat parameter that is gathered in slots: equal parts of a
 * node's ranks, rounded up to what allocations are multiples of. 0 where nothing is kept: without the option, under another
 * strategy than the model's, and on a single node, which gathers without messages anyway. For other numbers of ranks that share a copy
 * than there are, nodes are as large as the largest, but for the last, which has the rest.
 */
size_t fsdpi_node_part(const fsdp_model *model, const fsdpi_plan *plan, size_t view_bytes);

#endif
