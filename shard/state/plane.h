/**
 * @file
 * Where on a mesh a model is: the ranks that have parts of it, and which part is this rank's.
 */
#ifndef FSDPI_PLANE_H
#define FSDPI_PLANE_H

#include <stdbool.h>
#include <stdint.h>

#include "shard/state/model.h"

/**
 * The context of all ranks that make a model together, of which some may have said so and others not: that of the mesh which
 * opened `ctx`, if any rank names a mesh; else `ctx` itself. Collective over `ctx`.
 * @return FSDP_OK; FSDP_ERR_ARG, recorded: this rank has named none; or what the reduction returned, with `all` NULL
 */
fsdp_status fsdpi_plane_meet(fsdp_context *ctx, const fsdp_model_options *options, fsdp_context **all);

/** Finds this rank's place; does not open `plane->ctx`. Local. FSDP_ERR_ARG, recorded: the options are wrong. */
fsdp_status fsdpi_plane_find(fsdp_context *ctx, const fsdp_model_options *options, fsdpi_plane *plane);

/** Opens the context of all parts, if it is another one than `ctx`. Collective over the mesh. */
fsdp_status fsdpi_plane_open(fsdp_context *ctx, fsdpi_plane *plane);

/** Whether there are other parts than those in the model's own context. */
static inline bool fsdpi_has_plane(const fsdp_model *model)
{
    return model->plane.ctx != model->ctx;
}

/**
 * An agreement of all ranks that have parts of the model. An error is recorded in the model's context too, and `status` may have been
 * recorded there.
 */
fsdp_status fsdpi_plane_agree(const fsdp_model *model, const char *function, const char *label, uint64_t salt,
                              fsdp_status status);

/** Behind an agreement in the model's own context, which has said `status`: what all others say. Forced. */
fsdp_status fsdpi_plane_follow(const fsdp_model *model, const char *function, fsdp_status status);

/** The rank, in `plane->ctx`, that speaks for a stage: the first of those that have it. */
int fsdpi_plane_speaker(const fsdp_model *model, int stage);

/** Whether this rank's elements of a tensor are those that count, of the positions and stages that have it. */
static inline bool fsdpi_is_counted(const fsdpi_tensor *tensor)
{
    return (tensor->tp_parts > 1 || tensor->unit->model->plane.tp_position == 0) && !tensor->elsewhere;
}

#endif
