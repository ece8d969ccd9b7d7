/**
 * @file
 * One whole tensor of a model to one rank or all, or from one rank, without a checkpoint: to look at, to compare, to set by hand.
 *
 * The ranks' parts of that tensor are moved in pieces of at most FSDP_STAGING_BYTES. The unit is not gathered; ranks other
 * than `root` hold one piece at a time. Each piece is broadcast: for S bytes of a tensor, every rank reads S.
 *
 * For a tied tensor, the owner's elements are moved. An ignored tensor is exported from `root`'s own memory (to all: each rank gets
 * its own), and imported on every rank. Of a model on a mesh it is this part of a divided tensor that is moved, and the ranks are those
 * of the context that the model was made on.
 *
 * All functions are collective, like those of fsdp/model.h: errors are the same on all ranks, the model is still usable, and
 * FSDP_ERR_MPI and FSDP_ERR_TIMEOUT can come from each.
 */
#ifndef FSDP_TENSOR_IO_H
#define FSDP_TENSOR_IO_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

FSDP_EXTERN_C_BEGIN

/**
 * Copies the master values of one tensor to rank `root`. Collective. Blocking.
 *
 * @param[in]  name    of a tensor, as given to fsdp_unit_add(); the same on all ranks
 * @param[in]  root    a rank, the same everywhere
 * @param[out] values  on `root` all elements of the tensor, row-major, in the masters' type; not used elsewhere, where NULL is allowed
 * @param[in]  bytes   on `root` the BYTES of `values`, exactly those of the tensor; not used elsewhere
 * @return FSDP_OK; FSDP_ERR_ARG: no such tensor, no such rank, wrong bytes, a NULL pointer; FSDP_ERR_STATE: not committed,
 *         a pass is open; FSDP_ERR_MISMATCH: ranks name different tensors or roots; FSDP_ERR_MEMORY. `values` are
 *         untouched; if a collective on the way has failed, they are undefined.
 */
FSDP_API fsdp_status fsdp_tensor_export(fsdp_model *model, const char *name, int root, void *values, size_t bytes);

/**
 * Copies the master values of one tensor to every rank. Collective. Blocking. No rank needs memory beside `values`.
 *
 * @param[in]  name    as for fsdp_tensor_export()
 * @param[out] values  all elements of the tensor, row-major, in the masters' type
 * @param[in]  bytes   the BYTES of `values`, exactly those of the tensor
 * @return as for fsdp_tensor_export().
 */
FSDP_API fsdp_status fsdp_tensor_export_to_all(fsdp_model *model, const char *name, void *values, size_t bytes);

/**
 * Sets the master values of one tensor on all ranks from rank `root`. Collective. Blocking. Gradients and the state of
 * optimizers stay as they are.
 *
 * @param[in] values  on `root` as for fsdp_tensor_export(), which describes the other parameters too
 * @return as for fsdp_tensor_export(). After an error the tensor is unchanged; if a collective on the way has failed, it is
 *         undefined.
 */
FSDP_API fsdp_status fsdp_tensor_import(fsdp_model *model, const char *name, int root, const void *values,
                                        size_t bytes);

FSDP_EXTERN_C_END

#endif
