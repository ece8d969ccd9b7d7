/**
 * @file
 * What is divided over which axis of a mesh (fsdp_model_options.axis_strategies), and which strategy of the whole model that is.
 */
#ifndef FSDPI_AXIS_STRATEGIES_H
#define FSDPI_AXIS_STRATEGIES_H

#include "shard/state/model.h"

/**
 * Sets strategy, group_size and keep_on_node to what the axes come to; nothing where `axis_strategies` is NULL. Local.
 * @param[in] plane  where the model is on its mesh, as fsdpi_plane_find() says
 * @return FSDP_OK; for an agreement to print: FSDP_ERR_ARG, a text that is wrong, or one of those three options set beside it;
 *         FSDP_ERR_UNSUPPORTED, a combination that there is not, or not on these nodes
 */
fsdp_status fsdpi_axis_strategies_resolve(fsdp_context *ctx, const fsdpi_plane *plane, fsdp_model_options *options);

#endif
