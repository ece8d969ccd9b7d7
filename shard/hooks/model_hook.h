/**
 * @file
 * What a model and its hook have to do with each other.
 */
#ifndef FSDPI_MODEL_HOOK_H
#define FSDPI_MODEL_HOOK_H

#include "shard/hooks/hook.h"
#include "shard/state/model.h"

/** What a hook sees of the part of a flat parameter that this rank holds, but for its values. The tensors lie in
 * flat->parts. */
fsdp_gradient fsdpi_gradient_for_hook(fsdpi_flat *flat);

/** Replaces this rank's part of a gradient by its mean over the ranks of `ctx`, as fsdpi_hook_allreduce() does with the model's
 * hook. */
fsdp_status fsdpi_hook_average_part(fsdpi_flat *flat, fsdp_context *ctx, const char *function, float *part);

/** Memory of the host in which a hook works for a model on a GPU. Local. FSDP_ERR_MEMORY, recorded and printed. */
fsdp_status fsdpi_hook_room_open(fsdp_model *model);
void        fsdpi_hook_room_close(fsdp_model *model);

/** FSDP_OK; or the error, recorded and printed, for a hook that cannot average the gradients of a model. */
fsdp_status fsdpi_hook_fits(const fsdp_model *model, const fsdp_hook *hook, const char *function);

#endif
