/** @file One way through all that a pipeline keeps: with memory NULL it counts, else it lays out. */
#ifndef FSDPI_PIPELINE_DRAWING_H
#define FSDPI_PIPELINE_DRAWING_H

#include "shard/pipeline/run/plan.h"

typedef struct fsdpi_piece {
    unsigned char *memory;
    size_t         used;
} fsdpi_piece;

typedef struct fsdpi_drawing {
    fsdp_pipeline             *pipeline;
    const fsdpi_pipeline_plan *plan;
    fsdpi_piece                held, shown, lists, offered, pinned;
    fsdp_status                status;
} fsdpi_drawing;

static inline void *fsdpi_carve(fsdpi_piece *piece, size_t bytes)
{
    void *place = piece->memory != NULL ? piece->memory + piece->used : NULL;

    piece->used += fsdpi_shelf_pitch(bytes);
    return place;
}

#endif
