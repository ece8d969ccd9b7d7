/** @file What boxes have on a GPU besides their shelves: see fsdpi_box_gpu. */
#ifndef FSDPI_PIPELINE_LAYOUT_GPU_H
#define FSDPI_PIPELINE_LAYOUT_GPU_H

#include "shard/pipeline/run/drawing.h"

/** Behind the notes of an outbox, and its shelf. */
void fsdpi_draw_outbox_gpu(fsdpi_drawing *d, fsdpi_outbox *box, int stage, int flow);

/** Behind the shelf of an inbox that is filled from another rank. */
void fsdpi_draw_inbox_gpu(fsdpi_drawing *d, fsdpi_inbox *box, int stage, int flow);

#endif
