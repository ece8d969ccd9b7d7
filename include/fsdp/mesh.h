/**
 * @file
 * A mesh: the ranks of a context as a grid, with an axis for each kind of parallelism, and contexts for the ranks along them.
 *
 *     const fsdp_axis axes[] = {{"pp", 2}, {"dp", 0}, {"tp", 4}};
 *     fsdp_mesh_create(ctx, axes, 3, NULL, &mesh);
 *     fsdp_mesh_context(mesh, "dp", &dp);    (a model of this stage and part is made on this)
 *     fsdp_mesh_context(mesh, "tp", &tp);    (what the parts of a layer exchange goes over this)
 *
 * Axes are in the order of an array's dimensions in C, as those of PyTorch's DeviceMesh: the last one varies fastest. A place is
 * a position in that array. Ranks are laid onto places by the nodes that they are on, so that the last axis, which communicates
 * most, stays within nodes wherever it fits, and the first one is what crosses them.
 */
#ifndef FSDP_MESH_H
#define FSDP_MESH_H

#include <stddef.h>
#include <stdio.h>

#include "fsdp/context.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** Most axes of a mesh. */
#define FSDP_MAX_AXES 6
/** BYTES of the longest name of an axis, with its NUL. */
#define FSDP_AXIS_NAME_BYTES 32

typedef struct fsdp_mesh fsdp_mesh;

typedef struct fsdp_axis {
    const char *name; /**< letters, digits, `_` and `-`; copied */
    int         size; /**< ranks along it; 0, for one axis at most: as many as the others leave */
} fsdp_axis;

FSDP_EXTERN_C_BEGIN

/**
 * Lays the ranks of a context out as a grid. Collective. Blocking.
 *
 * Each node takes as many whole groups of the last axis longer than 1 as it has ranks for, nodes one after the other and the
 * ranks of each in order; what is left over on the nodes fills the groups behind these, which cross nodes. Rank 0 warns of
 * such groups, with what the link between the nodes moves.
 *
 * @param[in]  ctx     an open context, which has to stay open
 * @param[in]  axes    `n_axes`, the same on all ranks; copied
 * @param[in]  n_axes  1 to FSDP_MAX_AXES
 * @param[in]  order   NULL; or the rank at each place, as many as the context has, the same on all ranks: in place of the order
 *                     by nodes. Copied, 4 BYTES for each rank.
 * @param[out] mesh    the caller releases it with fsdp_mesh_destroy(); NULL on failure
 * @return FSDP_OK; FSDP_ERR_ARG: sizes whose product is not the number of ranks, a size below 0, two that are 0, a name that is
 *         missing, too long, of other characters or there twice, an order that is not one; FSDP_ERR_MISMATCH: ranks pass
 *         different axes or orders; FSDP_ERR_MEMORY, FSDP_ERR_MPI, FSDP_ERR_TIMEOUT. The same on all ranks.
 */
FSDP_API fsdp_status fsdp_mesh_create(fsdp_context *ctx, const fsdp_axis *axes, size_t n_axes, const int *order,
                                      fsdp_mesh **mesh);

/**
 * The context of the ranks that differ from this one in their positions along some axes only: a line of the grid, or, of several
 * axes, a plane. Its ranks are in the order of their places. With the settings of the mesh's context, of which it counts as a
 * part: what it holds from its beginning is in the memory of both.
 *
 * The first call for these axes opens it, and is collective over the mesh. Blocking. Later ones are local, and return the same.
 *
 * @param[in]  axes  names of axes, in any order, with `+` between them: "tp", "dp+tp"
 * @param[out] ctx   belongs to the mesh: not to be finalized; it may be the mesh's own, where that is the same. NULL on failure.
 * @return FSDP_OK; FSDP_ERR_ARG: an argument is NULL, no name or one that no axis has, a name twice; FSDP_ERR_MISMATCH: ranks ask for different
 *         axes; and what fsdp_init() returns.
 */
FSDP_API fsdp_status fsdp_mesh_context(fsdp_mesh *mesh, const char *axes, fsdp_context **ctx);

/** How many ranks differ in their positions along these axes only. Local; -1 with fsdp_last_error() for names of no axes. */
FSDP_API int fsdp_mesh_size(const fsdp_mesh *mesh, const char *axes);

/** The position of this rank among them, which is its rank in their context. Local; -1 as for fsdp_mesh_size(). */
FSDP_API int fsdp_mesh_position(const fsdp_mesh *mesh, const char *axes);

/**
 * The rank, in the mesh's context, at given positions along all axes. Local.
 * @param[in] positions  one for each axis, in the order given to fsdp_mesh_create()
 * @return -1 with fsdp_last_error() if an argument is NULL or a position is none.
 */
FSDP_API int fsdp_mesh_rank(const fsdp_mesh *mesh, const int *positions);

/**
 * Prints where ranks are: a line for each group of the last axis longer than 1. Local.
 * @param[in] file  an open stream
 * @return FSDP_OK; FSDP_ERR_ARG if an argument is NULL.
 */
FSDP_API fsdp_status fsdp_mesh_print(const fsdp_mesh *mesh, FILE *file);

/**
 * Finalizes the contexts of a mesh and releases it; models on these have to be destroyed first. Collective. NULL does nothing.
 * fsdp_finalize() of the mesh's context does it, with a warning, where it has not been done.
 */
FSDP_API void fsdp_mesh_destroy(fsdp_mesh *mesh);

FSDP_EXTERN_C_END

#endif
