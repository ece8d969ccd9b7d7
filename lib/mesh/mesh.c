#include "lib/mesh/mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/context/context.h"
#include "lib/context/part.h"
#include "lib/device/memory.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

int fsdpi_mesh_rank_at(const fsdp_mesh *mesh, int place)
{
    return mesh->order != NULL ? mesh->order[place] : fsdpi_lay_rank(&mesh->lay, place);
}

static fsdp_status refuse_order(fsdp_context *ctx, const int *order, int place)
{
    return fsdpi_fail_together(
        ctx, FSDP_ERR_ARG,
        "fsdp_mesh_create: the order has %d at place %d, which is no rank or there already; give each "
        "of the ranks 0 to %d once",
        order[place], place, ctx->size - 1);
}

static fsdp_status check_order(fsdp_context *ctx, const int *order)
{
    bool       *seen   = calloc((size_t)ctx->size, sizeof *seen);
    fsdp_status status = FSDP_OK;

    if (seen == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_MEMORY, "fsdp_mesh_create: no memory for the order of %d ranks",
                                   ctx->size);
    }
    for (int i = 0; status == FSDP_OK && i < ctx->size; i++) {
        if (order[i] < 0 || order[i] >= ctx->size || seen[order[i]]) {
            status = refuse_order(ctx, order, i);
        } else {
            seen[order[i]] = true;
        }
    }
    free(seen);
    return status;
}

static int place_in(const int *order, int rank)
{
    int place = 0;

    while (order[place] != rank) {
        place++;
    }
    return place;
}

/* Whether every rank is at the place of its number. */
static bool is_in_rank_order(const fsdp_mesh *mesh)
{
    for (int rank = 0; rank < mesh->ctx->size; rank++) {
        if (mesh->order != NULL ? mesh->order[rank] != rank : fsdpi_lay_place(&mesh->lay, rank) != rank) {
            return false;
        }
    }
    return true;
}

static void warn_of_crossing(const fsdp_mesh *mesh)
{
    const fsdp_context *ctx      = mesh->ctx;
    const int           crossing = mesh->order == NULL ? fsdpi_lay_crossing(&mesh->lay) : 0;
    const char         *name     = mesh->axes.name[fsdpi_axes_fastest(&mesh->axes)];

    if (ctx->rank != 0 || crossing == 0) {
        return;
    }
    fsdpi_log(mesh->ctx, FSDP_LOG_WARN,
              "mesh: of the %d groups of axis \"%s\", %d have ranks on several nodes: a MiB that they exchange takes "
              "at least "
              "%.0f us between these; a size that divides the ranks of each node, %d to %d, keeps it on nodes",
              ctx->size / mesh->lay.group, name, crossing, ctx->link.rate > 0.0 ? 1e6 * 0x1p20 / ctx->link.rate : 0.0,
              ctx->nodes.smallest, ctx->nodes.largest);
}

/* ---- made -------------------------------------------------------------------------------------------------------- */

static size_t order_bytes(const fsdp_context *ctx)
{
    return (size_t)ctx->size * sizeof(int);
}

static size_t groups_bytes(const fsdp_context *ctx)
{
    return fsdpi_lay_length(&ctx->nodes) * sizeof(int);
}

static void release(fsdp_mesh *mesh)
{
    fsdp_context *ctx = mesh->ctx;

    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, mesh->order, order_bytes(ctx));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, mesh->lay.groups, groups_bytes(ctx));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, mesh, sizeof *mesh);
}

/* `axes` and `order` are good. NULL where there is no memory. */
static fsdp_mesh *make(fsdp_context *ctx, const fsdpi_axes *axes, const int *order)
{
    fsdp_mesh *mesh = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *mesh);

    if (mesh == NULL) {
        return NULL;
    }
    *mesh            = (fsdp_mesh){.ctx = ctx, .axes = *axes};
    mesh->lay.nodes  = &ctx->nodes;
    mesh->lay.group  = axes->size[fsdpi_axes_fastest(axes)];
    mesh->lay.groups = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, groups_bytes(ctx));
    mesh->order      = order != NULL ? fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, order_bytes(ctx)) : NULL;
    if (mesh->lay.groups == NULL || (order != NULL && mesh->order == NULL)) {
        release(mesh);
        return NULL;
    }
    fsdpi_lay_fill(&mesh->lay);
    if (order != NULL) {
        memcpy(mesh->order, order, order_bytes(ctx));
    }
    mesh->place = order != NULL ? place_in(order, ctx->rank) : fsdpi_lay_place(&mesh->lay, ctx->rank);
    return mesh;
}

static void destroy(void *object)
{
    fsdp_mesh    *mesh = object;
    fsdp_context *ctx  = mesh->ctx;

    fsdpi_disown(ctx, &mesh->owned);
    for (fsdpi_axis_set set = 0; set <= fsdpi_axes_all(&mesh->axes); set++) {
        fsdpi_part_close(ctx, mesh->parts[set]);
    }
    release(mesh);
}

fsdp_status fsdp_mesh_create(fsdp_context *ctx, const fsdp_axis *axes, size_t n_axes, const int *order,
                             fsdp_mesh **mesh)
{
    char       label[FSDPI_AXES_TEXT_BYTES];
    fsdpi_axes taken;
    fsdp_mesh *made = NULL;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_mesh_create: the context is NULL; pass one from fsdp_init");
    }
    fsdp_status status = fsdpi_axes_take(ctx, axes, n_axes, ctx->size, &taken);
    status             = status == FSDP_OK && order != NULL ? check_order(ctx, order) : status;
    fsdpi_axes_text(&taken, label);
    if (mesh == NULL) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_mesh_create: the place for the mesh is NULL");
    } else {
        *mesh = NULL;
    }
    if (status == FSDP_OK) {
        made   = make(ctx, &taken, order);
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    uint64_t salt = fsdpi_hash_text(FSDPI_HASH_START, label);
    if (made != NULL && order != NULL) {
        salt = fsdpi_hash_bytes(salt, order, order_bytes(ctx));
    }
    status = fsdpi_agree(ctx, "fsdp_mesh_create", label, salt, status, false);
    if (made == NULL || mesh == NULL) {
        return status;
    }
    if (status != FSDP_OK) {
        release(made);
        return status;
    }
    fsdpi_own(ctx, &made->owned, "mesh", made, destroy);
    warn_of_crossing(made);
    *mesh = made;
    return FSDP_OK;
}

void fsdp_mesh_destroy(fsdp_mesh *mesh)
{
    if (mesh != NULL) {
        destroy(mesh);
    }
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

static fsdp_status open_part(fsdp_mesh *mesh, fsdpi_axis_set set)
{
    const fsdpi_axes    *axes   = &mesh->axes;
    const fsdpi_axis_set others = fsdpi_axes_all(axes) & ~set;
    fsdp_context        *ctx    = mesh->ctx;

    if (fsdpi_axes_size(axes, others) == 1 && is_in_rank_order(mesh)) {
        mesh->parts[set] = ctx;
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_part_open(ctx, false, fsdpi_axes_position(axes, others, mesh->place),
                             fsdpi_axes_position(axes, set, mesh->place), &ctx->config, &mesh->parts[set]));
    mesh->parts[set]->mesh = mesh;
    return FSDP_OK;
}

static fsdp_status open_together(fsdp_mesh *mesh, const char *axes, fsdpi_axis_set set, fsdp_status status)
{
    fsdp_context *ctx = mesh->ctx;

    FSDP_TRY(fsdpi_agree(ctx, "fsdp_mesh_context", axes, set, status, false));
    status = fsdpi_agree(ctx, "fsdp_mesh_context", axes, 0, open_part(mesh, set), true);
    if (status != FSDP_OK) {
        fsdpi_part_close(ctx, mesh->parts[set]);
        mesh->parts[set] = NULL;
    }
    return status;
}

fsdp_status fsdp_mesh_context(fsdp_mesh *mesh, const char *axes, fsdp_context **ctx)
{
    fsdpi_axis_set set = 0;

    if (mesh == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_mesh_context: the mesh is NULL");
    }
    fsdp_status status = fsdpi_axes_parse(mesh->ctx, "fsdp_mesh_context", &mesh->axes, axes, &set);
    if (ctx == NULL) {
        status = fsdpi_fail_together(mesh->ctx, FSDP_ERR_ARG, "fsdp_mesh_context: the place for the context is NULL");
    } else {
        *ctx = NULL;
    }
    if (status != FSDP_OK || mesh->parts[set] == NULL) {
        FSDP_TRY(open_together(mesh, axes != NULL ? axes : "", set, status));
    }
    if (ctx != NULL) {
        *ctx = mesh->parts[set];
    }
    return FSDP_OK;
}

/* ---- asked ------------------------------------------------------------------------------------------------------- */

/* FSDP_OK, or what has been printed. */
static fsdp_status look_up(const fsdp_mesh *mesh, const char *function, const char *axes, fsdpi_axis_set *set)
{
    if (mesh == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the mesh is NULL", function);
    }
    const fsdp_status status = fsdpi_axes_parse(mesh->ctx, function, &mesh->axes, axes, set);
    if (status != FSDP_OK) {
        fsdpi_error_print(mesh->ctx, status);
    }
    return status;
}

int fsdp_mesh_size(const fsdp_mesh *mesh, const char *axes)
{
    fsdpi_axis_set set = 0;

    return look_up(mesh, "fsdp_mesh_size", axes, &set) == FSDP_OK ? fsdpi_axes_size(&mesh->axes, set) : -1;
}

int fsdp_mesh_position(const fsdp_mesh *mesh, const char *axes)
{
    fsdpi_axis_set set = 0;

    return look_up(mesh, "fsdp_mesh_position", axes, &set) == FSDP_OK
               ? fsdpi_axes_position(&mesh->axes, set, mesh->place)
               : -1;
}

int fsdp_mesh_rank(const fsdp_mesh *mesh, const int *positions)
{
    int place = 0;

    if (mesh == NULL || positions == NULL) {
        (void)fsdpi_fail(mesh != NULL ? mesh->ctx : NULL, FSDP_ERR_ARG, "fsdp_mesh_rank: the %s NULL",
                         mesh == NULL ? "mesh is" : "positions are");
        return -1;
    }
    for (int i = 0; i < mesh->axes.n; i++) {
        if (positions[i] < 0 || positions[i] >= mesh->axes.size[i]) {
            (void)fsdpi_fail(mesh->ctx, FSDP_ERR_ARG, "fsdp_mesh_rank: position %d along axis \"%s\"; use 0 to %d",
                             positions[i], mesh->axes.name[i], mesh->axes.size[i] - 1);
            return -1;
        }
        place += positions[i] * mesh->axes.stride[i];
    }
    return fsdpi_mesh_rank_at(mesh, place);
}
