/**
 * @file
 * The axes of a mesh by name: checked when they are declared, and found in "dp+tp".
 */
#ifndef FSDPI_AXES_H
#define FSDPI_AXES_H

#include <stdbool.h>

#include "fsdp/mesh.h"

/** A set of axes: bit i stands for axis i. */
typedef unsigned fsdpi_axis_set;

typedef struct fsdpi_axes {
    int  n;
    char name[FSDP_MAX_AXES][FSDP_AXIS_NAME_BYTES];
    int  size[FSDP_MAX_AXES];
    int  stride[FSDP_MAX_AXES]; /* places from one position to the next */
} fsdpi_axes;

/** Local. FSDP_ERR_ARG, for an agreement to print, where these are no axes of `ranks`. */
fsdp_status fsdpi_axes_take(fsdp_context *ctx, const fsdp_axis *axes, size_t n, int ranks, fsdpi_axes *taken);

/** The axis of a name that is `length` BYTES long; -1: there is none. */
int fsdpi_axes_find(const fsdpi_axes *axes, const char *name, size_t length);

/**
 * The axes that a text names. Local.
 * @param[in] ctx       whose error a failure is
 * @param[in] function  that was called
 * @return FSDP_ERR_ARG, recorded and not yet printed: no name, one that is none, or one twice
 */
fsdp_status fsdpi_axes_parse(fsdp_context *ctx, const char *function, const fsdpi_axes *axes, const char *text,
                             fsdpi_axis_set *set);

/** How many places differ along these axes only. */
int fsdpi_axes_size(const fsdpi_axes *axes, fsdpi_axis_set set);

/** The position of a place among these. */
int fsdpi_axes_position(const fsdpi_axes *axes, fsdpi_axis_set set, int place);

static inline fsdpi_axis_set fsdpi_axes_all(const fsdpi_axes *axes)
{
    return (1u << axes->n) - 1;
}

/** The last axis longer than 1; or the first one. */
int fsdpi_axes_fastest(const fsdpi_axes *axes);

/** "pp 2 x dp 2 x tp 4". At most FSDPI_AXES_TEXT_BYTES with the NUL. */
enum { FSDPI_AXES_TEXT_BYTES = FSDP_MAX_AXES * (FSDP_AXIS_NAME_BYTES + 16) };
void fsdpi_axes_text(const fsdpi_axes *axes, char *text);

#endif
