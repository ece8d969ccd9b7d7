#include "gpt_mesh.h"

#include "mpi-examples/common/example_error.h"

/* Parts of a layer exchange most, so they are next to each other; stages exchange least. */
fsdp_status gpt_mesh_open(fsdp_context *ctx, size_t dp, size_t tp, size_t pp, gpt_mesh *mesh)
{
    const fsdp_axis axes[] = {{"pp", (int)pp}, {"dp", (int)dp}, {"tp", (int)tp}};

    *mesh = (gpt_mesh){.all = ctx};
    EXAMPLE_TRY(fsdp_mesh_create(ctx, axes, sizeof axes / sizeof axes[0], NULL, &mesh->mesh));
    EXAMPLE_TRY(fsdp_mesh_context(mesh->mesh, "dp", &mesh->dp));
    EXAMPLE_TRY(fsdp_mesh_context(mesh->mesh, "tp", &mesh->tp));
    return fsdp_mesh_context(mesh->mesh, "pp", &mesh->pp);
}

void gpt_mesh_close(gpt_mesh *mesh)
{
    fsdp_mesh_destroy(mesh->mesh);
    *mesh = (gpt_mesh){0};
}

int gpt_mesh_peer(const gpt_mesh *mesh, int stage_rank)
{
    const int positions[] = {stage_rank, fsdp_rank(mesh->dp), fsdp_rank(mesh->tp)};

    return fsdp_mesh_rank(mesh->mesh, positions);
}
