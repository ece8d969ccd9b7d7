#include "gpt_mesh.h"

#include <ctype.h>

#include "mpi-examples/common/example_error.h"

/* Parts of a layer exchange most, so they are next to each other; stages exchange least. Data axes are between them. */
fsdp_status gpt_mesh_open(fsdp_context *ctx, const gpt_options *o, gpt_mesh *mesh)
{
    const int       inner    = o->outer ? (int)(o->dp / o->outer) : 0;
    const fsdp_axis with_1[] = {{"pp", (int)o->pp}, {"dp", (int)o->dp}, {"tp", (int)o->tp}};
    const fsdp_axis with_2[] = {{"pp", (int)o->pp}, {"outer", (int)o->outer}, {"inner", inner}, {"tp", (int)o->tp}};

    *mesh = (gpt_mesh){.all = ctx, .inner = inner};
    EXAMPLE_TRY(fsdp_mesh_create(ctx, inner ? with_2 : with_1, inner ? 4 : 3, NULL, &mesh->mesh));
    EXAMPLE_TRY(fsdp_mesh_context(mesh->mesh, inner ? "outer+inner" : "dp", &mesh->dp));
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
    const int data = fsdp_rank(mesh->dp), part = fsdp_rank(mesh->tp);
    const int with_1[] = {stage_rank, data, part};

    if (mesh->inner) {
        const int with_2[] = {stage_rank, data / mesh->inner, data % mesh->inner, part};

        return fsdp_mesh_rank(mesh->mesh, with_2);
    }
    return fsdp_mesh_rank(mesh->mesh, with_1);
}

const char *gpt_mesh_strategies(const gpt_options *options, char text[GPT_STRATEGIES_BYTES])
{
    const char *from    = options->axis_strategies;
    int         is_name = 0; /* of a strategy, as behind "=" */
    size_t      i;

    if (!from) {
        return NULL;
    }
    for (i = 0; from[i] && i < GPT_STRATEGIES_BYTES - 1; i++) {
        is_name = from[i] != ',' && (is_name || from[i] == '=');
        text[i] = is_name ? (char)toupper((unsigned char)from[i]) : from[i];
    }
    text[i] = 0;
    return text;
}
