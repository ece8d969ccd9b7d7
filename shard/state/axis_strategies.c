/*
 * The last axis varies fastest among the ranks of the model's context, so that ranks which share something along inner axes follow
 * each other there. An inner axis divides at least what an outer one does: outer axes with NO_SHARD then have copies of what the others
 * divide, which are groups of a hybrid strategy; and where axes with FULL_SHARD are inside of others with SHARD_GRAD_OP, the nodes keep
 * between their ranks what has been gathered once.
 */
#include "shard/state/axis_strategies.h"

#include <string.h>

#include "lib/mesh/mesh.h"
#include "shard/state/strategy.h"

static const char create_name[] = "fsdp_model_create";

/* What the text says: of axes that are named, their strategies. */
typedef struct divisions {
    fsdpi_axis_set named;
    fsdp_strategy  of[FSDP_MAX_AXES];
} divisions;

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static fsdp_status check_axis(fsdp_context *ctx, const fsdpi_plane *plane, const divisions *d, int axis)
{
    const fsdpi_axes    *axes = &plane->mesh->axes;
    const fsdpi_axis_set one  = 1u << axis;

    if ((d->named & one) != 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: axis_strategies names axis \"%s\" twice; name each data axis once", create_name,
                                   axes->name[axis]);
    }
    if (((plane->tensor_axes | plane->stage_axes) & one) != 0) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG, "%s: axis_strategies names axis \"%s\", which is in %s; name the data axes alone",
            create_name, axes->name[axis], (plane->tensor_axes & one) != 0 ? "tensor_axis" : "stage_axis");
    }
    if (axes->size[axis] > 1 && (plane->data_axes & one) == 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: axis_strategies names axis \"%s\", and the context is not along it; make the "
                                   "model on one that is, or leave the axis out",
                                   create_name, axes->name[axis]);
    }
    return FSDP_OK;
}

static fsdp_status take_strategy(fsdp_context *ctx, const char *axis, const char *name, size_t length,
                                 fsdp_strategy *strategy)
{
    if (!fsdpi_strategy_find(name, length, strategy)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: axis_strategies gives axis \"%s\" the strategy \"%.*s\", which is none; use "
                                   "FULL_SHARD, SHARD_GRAD_OP, SHARD_OPTIM or NO_SHARD",
                                   create_name, axis, (int)(length < 40 ? length : 40), name);
    }
    return fsdpi_is_hybrid(*strategy)
               ? fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                     "%s: axis_strategies gives axis \"%s\" %s, which is of several axes; use NO_SHARD "
                                     "for outer axes, and FULL_SHARD or SHARD_GRAD_OP for inner ones",
                                     create_name, axis, fsdp_strategy_name(*strategy))
               : FSDP_OK;
}

/* One "axis=STRATEGY" of `length` BYTES. */
static fsdp_status take_item(fsdp_context *ctx, const fsdpi_plane *plane, const char *item, size_t length, divisions *d)
{
    const fsdpi_axes *axes  = &plane->mesh->axes;
    const char       *sign  = memchr(item, '=', length);
    const int         shown = (int)(length < 60 ? length : 60);
    char              known[FSDPI_AXES_TEXT_BYTES];

    if (sign == NULL) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "%s: axis_strategies has \"%.*s\" in place of AXIS=STRATEGY; write these with commas "
            "between them: \"node=NO_SHARD,gpu=FULL_SHARD\"",
            create_name, shown, item);
    }
    const int axis = fsdpi_axes_find(axes, item, (size_t)(sign - item));
    if (axis < 0) {
        fsdpi_axes_text(axes, known);
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: axis_strategies has \"%.*s\", and the mesh is %.100s; name one of its axes",
                                   create_name, shown, item, known);
    }
    FSDP_TRY(check_axis(ctx, plane, d, axis));
    FSDP_TRY(take_strategy(ctx, axes->name[axis], sign + 1, length - (size_t)(sign + 1 - item), &d->of[axis]));
    d->named |= 1u << axis;
    return FSDP_OK;
}

static fsdp_status parse(fsdp_context *ctx, const fsdpi_plane *plane, const char *text, divisions *d)
{
    const fsdpi_axes *axes = &plane->mesh->axes;
    size_t            length;

    for (const char *item = text;; item += length + 1) {
        length = strcspn(item, ",");
        FSDP_TRY(take_item(ctx, plane, item, length, d));
        if (item[length] == '\0') {
            break;
        }
    }
    for (int i = 0; i < axes->n; i++) {
        if ((plane->data_axes & ~d->named & 1u << i) != 0) {
            return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                       "%s: axis_strategies does not name axis \"%s\", which has %d ranks; name each "
                                       "data axis that is longer than 1",
                                       create_name, axes->name[i], axes->size[i]);
        }
    }
    return FSDP_OK;
}

/* ---- what goes together ------------------------------------------------------------------------------------------- */

/* How much a strategy divides. */
static int degree(fsdp_strategy strategy)
{
    return strategy == FSDP_FULL_SHARD ? 2 : strategy == FSDP_NO_SHARD ? 0 : 1;
}

static fsdp_status check_pair(fsdp_context *ctx, const fsdpi_axes *axes, const divisions *d, int outer, int inner)
{
    const fsdp_strategy out = d->of[outer], in = d->of[inner];

    if (out == in) {
        return FSDP_OK;
    }
    if (out == FSDP_SHARD_OPTIM || in == FSDP_SHARD_OPTIM) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                   "%s: axis_strategies gives axis \"%s\" %s and axis \"%s\" %s; use SHARD_GRAD_OP "
                                   "instead of SHARD_OPTIM, or give all axes that",
                                   create_name, axes->name[outer], fsdp_strategy_name(out), axes->name[inner],
                                   fsdp_strategy_name(in));
    }
    return degree(out) < degree(in)
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                     "%s: axis_strategies gives axis \"%s\" %s and axis \"%s\", inside it, %s, which "
                                     "divides less; put \"%s\" before \"%s\" in fsdp_mesh_create(), or give it %s too",
                                     create_name, axes->name[outer], fsdp_strategy_name(out), axes->name[inner],
                                     fsdp_strategy_name(in), axes->name[inner], axes->name[outer],
                                     fsdp_strategy_name(out));
}

/* The axes that count: those longer than 1; or, where there are none, the last one that is named. */
static fsdpi_axis_set counted(const fsdpi_plane *plane, const divisions *d)
{
    fsdpi_axis_set last = 0;

    for (int i = 0; i < plane->mesh->axes.n; i++) {
        last = (d->named & 1u << i) != 0 ? 1u << i : last;
    }
    return plane->data_axes != 0 ? plane->data_axes : last;
}

static fsdp_status check_pairs(fsdp_context *ctx, const fsdpi_axes *axes, fsdpi_axis_set set, const divisions *d)
{
    for (int inner = 0, outer = -1; inner < axes->n; inner++) {
        if ((set & 1u << inner) != 0) {
            FSDP_TRY(outer < 0 ? FSDP_OK : check_pair(ctx, axes, d, outer, inner));
            outer = inner;
        }
    }
    return FSDP_OK;
}

/* Of the axes that count, those with a strategy. */
static fsdpi_axis_set with(fsdpi_axis_set set, const divisions *d, fsdp_strategy strategy)
{
    fsdpi_axis_set found = 0;

    for (int i = 0; i < FSDP_MAX_AXES; i++) {
        found |= (set & 1u << i) != 0 && d->of[i] == strategy ? 1u << i : 0;
    }
    return found;
}

/* ---- where nodes keep what they have gathered ---------------------------------------------------------------------- */

static bool are_on_one_node(const fsdpi_nodes *nodes, int a, int b)
{
    return fsdpi_node_of(nodes, a) == fsdpi_node_of(nodes, b);
}

/* Whether ranks that follow each other, so many at a time, are on one node. */
static bool are_within_nodes(const fsdp_context *ctx, int ranks)
{
    for (int r = 1; r < ctx->size; r++) {
        if (r % ranks != 0 && !are_on_one_node(&ctx->nodes, r - 1, r)) {
            return false;
        }
    }
    return true;
}

/* Whether all groups of so many ranks are spread over nodes in the same way, node by node. */
static bool are_alike(const fsdp_context *ctx, int ranks)
{
    for (int r = 1; r < ctx->size; r++) {
        if (r % ranks == 0) {
            continue;
        }
        if (fsdpi_node_of(&ctx->nodes, r - 1) > fsdpi_node_of(&ctx->nodes, r) ||
            (r > ranks &&
             are_on_one_node(&ctx->nodes, r - 1, r) != are_on_one_node(&ctx->nodes, r - 1 - ranks, r - ranks))) {
            return false;
        }
    }
    return true;
}

/* `inner`: ranks along axes with FULL_SHARD; `group`: along these and those with SHARD_GRAD_OP. */
static fsdp_status check_keeping(fsdp_context *ctx, const fsdp_model_options *options, int inner, int group)
{
    if (options->placement != FSDP_ON_HOST) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                   "%s: axis_strategies with FULL_SHARD inside SHARD_GRAD_OP for a model on a GPU; use "
                                   "FULL_SHARD, or NO_SHARD, in place of SHARD_GRAD_OP, or FSDP_ON_HOST",
                                   create_name);
    }
    if (!are_within_nodes(ctx, inner)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "%s: axis_strategies has FULL_SHARD inside SHARD_GRAD_OP, and the %d ranks along the "
            "axes with FULL_SHARD are not all on one node, which would keep the parameters; make "
            "these axes shorter, or give all FULL_SHARD",
            create_name, inner);
    }
    return are_alike(ctx, group)
               ? FSDP_OK
               : fsdpi_fail_together(
                     ctx, FSDP_ERR_UNSUPPORTED,
                     "%s: axis_strategies has FULL_SHARD inside SHARD_GRAD_OP inside NO_SHARD, and the "
                     "copies, of %d ranks each, are not spread over nodes alike; use FULL_SHARD in place "
                     "of SHARD_GRAD_OP",
                     create_name, group);
}

/* ---- resolved ------------------------------------------------------------------------------------------------------ */

static fsdp_status check_others(fsdp_context *ctx, const fsdp_model_options *options)
{
    if (options->strategy != FSDP_FULL_SHARD) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: axis_strategies and strategy %s; leave strategy at its default, since it "
                                   "follows from axis_strategies",
                                   create_name, fsdp_strategy_name(options->strategy));
    }
    if (options->group_size != 0 || options->keep_on_node != 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: axis_strategies with group_size %d and keep_on_node %zu; leave both 0, since "
                                   "they follow from axis_strategies",
                                   create_name, options->group_size, options->keep_on_node);
    }
    return FSDP_OK;
}

/* What the axes that divide anything come to. */
static fsdp_strategy of_dividing(fsdpi_axis_set set, const divisions *d)
{
    if (with(set, d, FSDP_FULL_SHARD) != 0) {
        return FSDP_FULL_SHARD;
    }
    if (with(set, d, FSDP_SHARD_GRAD_OP) != 0) {
        return FSDP_SHARD_GRAD_OP;
    }
    return with(set, d, FSDP_SHARD_OPTIM) != 0 ? FSDP_SHARD_OPTIM : FSDP_NO_SHARD;
}

fsdp_status fsdpi_axis_strategies_resolve(fsdp_context *ctx, const fsdpi_plane *plane, fsdp_model_options *options)
{
    divisions d = {0};

    if (options->axis_strategies == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(check_others(ctx, options));
    FSDP_TRY(parse(ctx, plane, options->axis_strategies, &d));
    const fsdpi_axes    *axes = &plane->mesh->axes;
    const fsdpi_axis_set set  = counted(plane, &d);
    FSDP_TRY(check_pairs(ctx, axes, set, &d));

    const fsdpi_axis_set copies = with(set, &d, FSDP_NO_SHARD), inner = with(set, &d, FSDP_FULL_SHARD);
    const bool           has_copies = copies != 0 && copies != set;
    const fsdp_strategy  divided    = of_dividing(set, &d);
    const int            group      = fsdpi_axes_size(axes, set & ~copies);
    options->strategy               = !has_copies                  ? divided
                                      : divided == FSDP_FULL_SHARD ? FSDP_HYBRID_SHARD
                                                                   : FSDP_HYBRID_SHARD_ZERO2;
    options->group_size             = has_copies ? group : 0;
    options->keep_on_node           = inner != 0 && with(set, &d, FSDP_SHARD_GRAD_OP) != 0;
    return options->keep_on_node ? check_keeping(ctx, options, fsdpi_axes_size(axes, inner), group) : FSDP_OK;
}
