/**
 * @file
 * Places on a GPU through which the step of an optimizer works: see shard/optimizer/optimizer_device.c.
 */
#ifndef FSDPI_OPTIMIZER_STAGING_H
#define FSDPI_OPTIMIZER_STAGING_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/model.h"
#include "lib/device/gpu_device.h"

/* States of any optimizer, and moments of those that the library has itself. */
enum { FSDPI_MOST_STATES = FSDP_MAX_STATES, FSDPI_MOST_MOMENTS = 2, FSDPI_PIECES = 2 };

/** A place on the GPU for some elements of a flat parameter. What is not needed is NULL. */
typedef struct fsdpi_piece {
    float          *weights;                    /* offloaded masters */
    float          *moments[FSDPI_MOST_STATES]; /* in f32 */
    uint16_t       *narrow[FSDPI_MOST_MOMENTS]; /* offloaded moments as they are held, in bf16 */
    fsdpi_gpu_event arrived, updated, left;     /* copied in; worked on; copied out */
} fsdpi_piece;

typedef struct fsdpi_staging {
    void       *memory;
    size_t      bytes;
    size_t      elements; /* of a piece */
    size_t      n_pieces; /* 0: moments in f32 on the GPU need none */
    fsdpi_piece pieces[FSDPI_PIECES];
    size_t      used; /* pieces so far: they take turns */
} fsdpi_staging;

#endif
