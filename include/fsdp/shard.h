/**
 * @file
 * What this rank holds of a tensor, in the program's hands: masters, gradients and the states of optimizers, where they are. For
 * optimizers of the program's own between passes, for projections, statistics, surgery; PyTorch's to_local(), DeepSpeed's
 * safe_get_local_fp32_param() and safe_set_local_fp32_param().
 *
 *     fsdp_shard shard;
 *     fsdp_unit_shard(unit, i, &shard);
 *     for (size_t e = 0; e < shard.count; e++) {      (element shard.begin + e of the tensor, row-major)
 *         ((float *)shard.master)[e] = ...;
 *     }
 *     fsdp_model_shards_changed(model);
 *
 * On a rank, a tensor's elements are one interval. Under NO_SHARD that is all of it, on every rank, and under the hybrid strategies
 * as many ranks as there are copies hold the same interval: who writes there writes the same values on each of them.
 *
 * When pointers may be used. Memory stays where it is from fsdp_model_commit() to fsdp_model_destroy(), that of states from
 * fsdp_optimizer_create() to fsdp_optimizer_destroy(). But it is the program's only between passes: from the return of
 * fsdp_unit_shard() or fsdp_optimizer_state() to the next call that begins a pass, takes a step, clips, scales, saves or loads.
 * Behind these, ask again: that completes what is under way. After a step, masters and states are there with their new values, and
 * gradients are undefined. With FSDP_VERIFY=full, masters that have changed without fsdp_model_shards_changed() are found by the next
 * pass and the next step, whatever pointer was used, and however old it was.
 *
 * On a GPU pointers are those of the device (FSDP_ON_DEVICE; gradients also with FSDP_ON_DEVICE_OFFLOADED), and are read and
 * written by what is in the stream that fsdp_stream_set() has named. What is offloaded, masters and states, is on the host.
 */
#ifndef FSDP_SHARD_H
#define FSDP_SHARD_H

#include <stddef.h>

#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/optimizer.h"
#include "fsdp/status.h"

/** This rank's part of one tensor: elements `begin` up to `begin` + `count`. */
typedef struct fsdp_shard {
    void *master; /**< `count` elements; to write there, see fsdp_model_shards_changed() */
    void *
        gradient; /**< `count` elements of the reduced gradient, which may be written to before a step uses it; NULL: there
                              is none since the last step, or the tensor is frozen */
    size_t     begin; /**< the first one's index in the tensor, row-major */
    size_t     count; /**< ELEMENTS; 0: this rank holds none of the tensor, and the pointers are not to be used */
    fsdp_dtype dtype; /**< of masters and gradients */
} fsdp_shard;

FSDP_EXTERN_C_BEGIN

/**
 * Where this rank's part of tensor `i` of a unit is, in the order given to fsdp_unit_add(). Of a tied tensor it is its owner's.
 * Local, but that it completes reductions that are still under way, and their division, as clipping does: so call it on every rank,
 * for any tensors.
 *
 * @param[out] shard  untouched after an error
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, `i` is none of the unit's tensors; FSDP_ERR_UNSUPPORTED: an ignored tensor, which
 *         fsdp_unit_buffer() is for; FSDP_ERR_STATE: not committed, a pass is open (names it), or the step has failed; or the
 *         error of a reduction, with which the step fails.
 */
FSDP_API fsdp_status fsdp_unit_shard(fsdp_unit *unit, size_t i, fsdp_shard *shard);

/**
 * State `k` of an optimizer for the elements that fsdp_unit_shard() describes: Adam's and AdamW's first and second moment are 0 and 1,
 * the moment of Lion and the buffer of SGD with momentum 0. In the optimizer's `moment_dtype`. It may be written to: nobody needs to
 * be told, but that copies on several ranks must stay alike. Local, as fsdp_unit_shard().
 *
 * @return NULL with fsdp_last_error() where fsdp_unit_shard() fails, or a pointer is NULL, the optimizer is another model's or does
 *         not update the tensor (it is frozen, or belongs to another group), has no state `k`, or has moments in 8 bits. Where this rank holds no element
 *         of the tensor, a pointer that is not to be used.
 */
FSDP_API void *fsdp_optimizer_state(fsdp_optimizer *optimizer, fsdp_unit *unit, size_t i, size_t k);

/**
 * Says that masters may have been written to, on this rank or any: what is gathered of them, kept by nodes, or held in
 * another type is made anew.
 * Collective, between passes, once for any number of changes. Gradients and states stay as they are.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: not committed, a pass is open, or the step has failed; FSDP_ERR_MISMATCH, under
 *         FSDP_VERIFY=full: ranks that hold the same elements have written different values; write them alike, and call it again.
 */
FSDP_API fsdp_status fsdp_model_shards_changed(fsdp_model *model);

FSDP_EXTERN_C_END

#endif
