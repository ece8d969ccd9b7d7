/**
 * @file
 * What a mesh consists of.
 */
#ifndef FSDPI_MESH_H
#define FSDPI_MESH_H

#include "lib/context/owned.h"
#include "lib/mesh/axes.h"
#include "lib/mesh/lay.h"

struct fsdp_mesh {
    fsdp_context *ctx;
    fsdpi_owned   owned;
    fsdpi_axes    axes;
    fsdpi_lay     lay;
    int          *order;                     /* NULL; or the rank at each place, in place of `lay` */
    int           place;                     /* of this rank */
    fsdp_context *parts[1 << FSDP_MAX_AXES]; /* by fsdpi_axis_set; NULL: not open */
};

/** Takes time as the logarithm of the number of nodes, at most. */
int fsdpi_mesh_rank_at(const fsdp_mesh *mesh, int place);

#endif
