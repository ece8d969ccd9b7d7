#include "lib/base/error.h"
#include "lib/base/plural.h"
#include "lib/context/context.h"
#include "lib/mesh/mesh.h"

/* The ranks from `place` on that differ along the last axis, and their nodes. */
static void print_group(const fsdp_mesh *mesh, int place, int length, FILE *file)
{
    const fsdpi_axes  *axes  = &mesh->axes;
    const fsdpi_nodes *nodes = &mesh->ctx->nodes;
    int                node  = -1;

    for (int i = 0; i < axes->n; i++) {
        if (i != fsdpi_axes_fastest(axes)) {
            (void)fprintf(file, "%s %d  ", axes->name[i], place / axes->stride[i] % axes->size[i]);
        }
    }
    (void)fprintf(file, "%s", axes->name[fsdpi_axes_fastest(axes)]);
    for (int i = 0; i < length; i++) {
        const int rank = fsdpi_mesh_rank_at(mesh, place + i);

        if (fsdpi_node_of(nodes, rank) != node) {
            node = fsdpi_node_of(nodes, rank);
            (void)fprintf(file, "  node %d:", node);
        }
        (void)fprintf(file, " %d", rank);
    }
    (void)fprintf(file, "\n");
}

fsdp_status fsdp_mesh_print(const fsdp_mesh *mesh, FILE *file)
{
    char text[FSDPI_AXES_TEXT_BYTES];

    if (mesh == NULL || file == NULL) {
        return fsdpi_fail(mesh != NULL ? mesh->ctx : NULL, FSDP_ERR_ARG, "fsdp_mesh_print: the %s is NULL",
                          mesh == NULL ? "mesh" : "stream");
    }
    const fsdp_context *ctx    = mesh->ctx;
    const int           length = mesh->axes.size[fsdpi_axes_fastest(&mesh->axes)];

    fsdpi_axes_text(&mesh->axes, text);
    (void)fprintf(file, "mesh %s: %d rank%s on %d node%s\n", text, ctx->size, fsdpi_s((uint64_t)ctx->size),
                  ctx->nodes.count, fsdpi_s((uint64_t)ctx->nodes.count));
    for (int place = 0; place < ctx->size; place += length) {
        print_group(mesh, place, length, file);
    }
    return FSDP_OK;
}
