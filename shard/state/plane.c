#include "shard/state/plane.h"

#include <stdio.h>

#include "collectives/collectives.h"
#include "lib/mesh/mesh.h"

static const char create_name[] = "fsdp_model_create";

/* What of the options needs a mesh. */
typedef struct mesh_option {
    const char *name, *text; /* `text` NULL: none is given */
} mesh_option;

static mesh_option first_of_mesh(const fsdp_model_options *o)
{
    if (o->tensor_axis != NULL) {
        return (mesh_option){"tensor_axis", o->tensor_axis};
    }
    return o->stage_axis != NULL ? (mesh_option){"stage_axis", o->stage_axis}
                                 : (mesh_option){"axis_strategies", o->axis_strategies};
}

/* ---- who makes it ------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_plane_meet(fsdp_context *ctx, const fsdp_model_options *options, fsdp_context **all)
{
    const fsdpi_purpose purpose = {.name = create_name, .label = "mesh", .status = FSDP_OK};
    int32_t             named   = options->mesh != NULL || first_of_mesh(options).text != NULL;

    *all = ctx;
    if (ctx->mesh == NULL) {
        return FSDP_OK;
    }
    const fsdp_status status = fsdpi_allreduce(ctx, &purpose, FSDP_IN_PLACE, &named, 1, FSDP_I32, FSDP_MAX);
    if (status != FSDP_OK) {
        *all = NULL;
        return status;
    }
    if (named == 0) {
        return FSDP_OK;
    }
    *all = ctx->mesh->ctx;
    return options->mesh != NULL
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                     "%s: fsdp_model_options.mesh is NULL on rank %d, in a context of a "
                                     "mesh whose axes are named; set it on all ranks",
                                     create_name, (*all)->rank);
}

/* ---- which axes -------------------------------------------------------------------------------------------------- */

static fsdpi_axis_set longer_than_1(const fsdpi_axes *axes, fsdpi_axis_set set)
{
    fsdpi_axis_set left = 0;

    for (int i = 0; i < axes->n; i++) {
        left |= axes->size[i] > 1 ? set & 1u << i : 0;
    }
    return left;
}

/* The axes of a context of the mesh, but for those of size 1. */
static bool find_axes(const fsdp_mesh *mesh, const fsdp_context *ctx, fsdpi_axis_set *found)
{
    for (fsdpi_axis_set set = 0; set <= fsdpi_axes_all(&mesh->axes); set++) {
        if (mesh->parts[set] == ctx) {
            *found = longer_than_1(&mesh->axes, set);
            return true;
        }
    }
    return false;
}

static fsdp_status parse(fsdp_context *ctx, const fsdp_mesh *mesh, const char *name, fsdpi_axis_set *set)
{
    *set = 0;
    return name != NULL ? fsdpi_axes_parse(ctx, create_name, &mesh->axes, name, set) : FSDP_OK;
}

static fsdp_status check_no_mesh(fsdp_context *ctx, const fsdp_model_options *options)
{
    const mesh_option given = first_of_mesh(options);

    return given.text == NULL
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                     "%s: %s is \"%.40s\", and mesh is NULL; set fsdp_model_options.mesh", create_name,
                                     given.name, given.text);
}

static fsdp_status check_apart(fsdp_context *ctx, const fsdp_model_options *o, fsdpi_axis_set data,
                               fsdpi_axis_set tensor, fsdpi_axis_set stage)
{
    if ((tensor & stage) != 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: tensor_axis is \"%.40s\" and stage_axis \"%.40s\"; use two axes", create_name,
                                   o->tensor_axis, o->stage_axis);
    }
    return (data & (tensor | stage)) == 0
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                     "%s: the context is one along axis \"%.40s\" too; make the model on that of the "
                                     "data axes alone, as fsdp_mesh_context() opens it",
                                     create_name, (data & tensor) != 0 ? o->tensor_axis : o->stage_axis);
}

fsdp_status fsdpi_plane_find(fsdp_context *ctx, const fsdp_model_options *o, fsdpi_plane *plane)
{
    const fsdp_mesh *mesh = o->mesh;
    fsdpi_axis_set   data, tensor, stage;

    *plane = (fsdpi_plane){.ctx = ctx, .mesh = o->mesh, .tp_size = 1, .n_stages = 1};
    if (mesh == NULL) {
        return check_no_mesh(ctx, o);
    }
    if (!find_axes(mesh, ctx, &data)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: the context is none of the mesh's; make the model on one that "
                                   "fsdp_mesh_context() has opened for its data axes",
                                   create_name);
    }
    FSDP_TRY(parse(ctx, mesh, o->tensor_axis, &tensor));
    FSDP_TRY(parse(ctx, mesh, o->stage_axis, &stage));
    FSDP_TRY(check_apart(ctx, o, data, tensor, stage));
    (void)snprintf(plane->tensor_text, sizeof plane->tensor_text, "%s", o->tensor_axis != NULL ? o->tensor_axis : "");
    (void)snprintf(plane->stage_text, sizeof plane->stage_text, "%s", o->stage_axis != NULL ? o->stage_axis : "");
    plane->axes        = data | longer_than_1(&mesh->axes, tensor | stage);
    plane->data_axes   = data;
    plane->tensor_axes = tensor;
    plane->stage_axes  = stage;
    plane->tp_size     = fsdpi_axes_size(&mesh->axes, tensor);
    plane->tp_position = fsdpi_axes_position(&mesh->axes, tensor, mesh->place);
    plane->n_stages    = fsdpi_axes_size(&mesh->axes, stage);
    plane->stage       = fsdpi_axes_position(&mesh->axes, stage, mesh->place);
    return FSDP_OK;
}

fsdp_status fsdpi_plane_open(fsdp_context *ctx, fsdpi_plane *plane)
{
    char   names[FSDP_MAX_AXES * FSDP_AXIS_NAME_BYTES] = "";
    size_t used                                        = 0;

    if (plane->tp_size == 1 && plane->n_stages == 1) {
        return FSDP_OK;
    }
    for (int i = 0; i < plane->mesh->axes.n; i++) {
        if ((plane->axes & 1u << i) != 0) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? "+" : "",
                                     plane->mesh->axes.name[i]);
        }
    }
    const fsdp_status status = fsdp_mesh_context(plane->mesh, names, &plane->ctx);
    fsdpi_error_hand_on(plane->mesh->ctx, ctx, status);
    return status;
}

int fsdpi_plane_speaker(const fsdp_model *model, int stage)
{
    const fsdpi_plane *plane = &model->plane;
    int                rank = 0, left = stage;

    for (int i = plane->mesh != NULL ? plane->mesh->axes.n - 1 : -1, stride = 1; i >= 0; i--) {
        const int size = plane->mesh->axes.size[i];

        if ((plane->stage_axes & 1u << i) != 0) {
            rank += left % size * stride;
            left /= size;
        }
        stride *= (plane->axes & 1u << i) != 0 ? size : 1;
    }
    return rank;
}

/* ---- agreeing ---------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_plane_agree(const fsdp_model *model, const char *function, const char *label, uint64_t salt,
                              fsdp_status status)
{
    fsdp_context *all = model->plane.ctx;

    fsdpi_error_hand_on(model->ctx, all, status);
    const fsdp_status told = fsdpi_agree(all, function, label, salt, status, true);
    fsdpi_error_hand_on(all, model->ctx, told);
    return told;
}

fsdp_status fsdpi_plane_follow(const fsdp_model *model, const char *function, fsdp_status status)
{
    return fsdpi_has_plane(model) ? fsdpi_plane_agree(model, function, NULL, 0, status) : status;
}
