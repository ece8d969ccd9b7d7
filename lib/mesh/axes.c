#include "lib/mesh/axes.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"

static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

/* ---- declared ---------------------------------------------------------------------------------------------------- */

int fsdpi_axes_find(const fsdpi_axes *axes, const char *name, size_t length)
{
    for (int i = 0; i < axes->n; i++) {
        if (strlen(axes->name[i]) == length && memcmp(axes->name[i], name, length) == 0) {
            return i;
        }
    }
    return -1;
}

static fsdp_status take_name(fsdp_context *ctx, const char *name, fsdpi_axes *taken)
{
    const size_t length = name != NULL ? strlen(name) : 0;

    if (length == 0 || length >= FSDP_AXIS_NAME_BYTES || strspn(name, name_characters) != length) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "fsdp_mesh_create: axis %d is named \"%s\"; use 1 to %d letters, digits, _ and -",
                                   taken->n, name != NULL ? name : "", FSDP_AXIS_NAME_BYTES - 1);
    }
    if (fsdpi_axes_find(taken, name, length) >= 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "fsdp_mesh_create: two axes are named \"%s\"; give each its own name", name);
    }
    memcpy(taken->name[taken->n], name, length + 1);
    return FSDP_OK;
}

static fsdp_status refuse_product(fsdp_context *ctx, const fsdpi_axes *taken, int ranks)
{
    char text[FSDPI_AXES_TEXT_BYTES];

    fsdpi_axes_text(taken, text);
    return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                               "fsdp_mesh_create: the axes are %s, but there are %d ranks; their product has to be the "
                               "number of ranks, and one of "
                               "them may be 0 for what the others leave",
                               text, ranks);
}

/* Gives the axis of size 0, if there is one, what the others leave. */
static fsdp_status fill_product(fsdp_context *ctx, int ranks, fsdpi_axes *taken)
{
    long long product = 1;
    int       open    = -1;

    for (int i = 0; i < taken->n; i++) {
        if (taken->size[i] < 0 || (taken->size[i] == 0 && open >= 0)) {
            return refuse_product(ctx, taken, ranks);
        }
        if (taken->size[i] == 0) {
            open = i;
        } else if ((product *= taken->size[i]) > ranks) {
            return refuse_product(ctx, taken, ranks);
        }
    }
    if (ranks % product != 0 || (open < 0 && product != ranks)) {
        return refuse_product(ctx, taken, ranks);
    }
    if (open >= 0) {
        taken->size[open] = ranks / (int)product;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_axes_take(fsdp_context *ctx, const fsdp_axis *axes, size_t n, int ranks, fsdpi_axes *taken)
{
    *taken = (fsdpi_axes){.n = 0};
    if (axes == NULL || n < 1 || n > FSDP_MAX_AXES) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_mesh_create: %s%zu axes; give 1 to %d",
                                   axes == NULL ? "NULL for " : "", n, FSDP_MAX_AXES);
    }
    while (taken->n < (int)n) {
        FSDP_TRY(take_name(ctx, axes[taken->n].name, taken));
        taken->size[taken->n] = axes[taken->n].size;
        taken->n++;
    }
    FSDP_TRY(fill_product(ctx, ranks, taken));
    for (int i = taken->n - 1, stride = 1; i >= 0; i--) {
        taken->stride[i] = stride;
        stride *= taken->size[i];
    }
    return FSDP_OK;
}

/* ---- named ------------------------------------------------------------------------------------------------------- */

static fsdp_status refuse_text(fsdp_context *ctx, const char *function, const fsdpi_axes *axes, const char *text)
{
    char known[FSDPI_AXES_TEXT_BYTES];

    fsdpi_axes_text(axes, known);
    return fsdpi_fail_together(
        ctx, FSDP_ERR_ARG,
        "%s: \"%s\" does not name axes; these are %s: give one or some of their names, each once, "
        "with + between them",
        function, text != NULL ? text : "", known);
}

fsdp_status fsdpi_axes_parse(fsdp_context *ctx, const char *function, const fsdpi_axes *axes, const char *text,
                             fsdpi_axis_set *set)
{
    const char *name = text;

    *set = 0;
    while (name != NULL) {
        const size_t length = strcspn(name, "+");
        const int    axis   = fsdpi_axes_find(axes, name, length);

        if (axis < 0 || (*set & 1u << axis) != 0) {
            return refuse_text(ctx, function, axes, text);
        }
        *set |= 1u << axis;
        if (name[length] == '\0') {
            return FSDP_OK;
        }
        name += length + 1;
    }
    return refuse_text(ctx, function, axes, text);
}

int fsdpi_axes_size(const fsdpi_axes *axes, fsdpi_axis_set set)
{
    int size = 1;

    for (int i = 0; i < axes->n; i++) {
        size *= (set & 1u << i) != 0 ? axes->size[i] : 1;
    }
    return size;
}

int fsdpi_axes_position(const fsdpi_axes *axes, fsdpi_axis_set set, int place)
{
    int position = 0;

    for (int i = 0; i < axes->n; i++) {
        if ((set & 1u << i) != 0) {
            position = position * axes->size[i] + place / axes->stride[i] % axes->size[i];
        }
    }
    return position;
}

int fsdpi_axes_fastest(const fsdpi_axes *axes)
{
    int axis = axes->n - 1;

    while (axis > 0 && axes->size[axis] == 1) {
        axis--;
    }
    return axis;
}

void fsdpi_axes_text(const fsdpi_axes *axes, char *text)
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < axes->n; i++) {
        length += (size_t)snprintf(text + length, FSDPI_AXES_TEXT_BYTES - length, "%s%s %d", i > 0 ? " x " : "",
                                   axes->name[i], axes->size[i]);
    }
}
