/**
 * @file
 * The ranks as a grid: data, tensor and pipeline parallelism.
 */
#ifndef GPT_MESH_H
#define GPT_MESH_H

#include <fsdp/fsdp.h>

#include "gpt_options.h"

typedef struct gpt_mesh {
    fsdp_mesh    *mesh;
    fsdp_context *all;          /* every rank */
    fsdp_context *dp, *tp, *pp; /* those that differ from this one along this axis only */
    int           inner;        /* of dp, ranks along the second of its axes, if it is two; else 0 */
} gpt_mesh;

/** Sizes that have been checked, and completed: their product is the number of ranks. Collective. Close it in any case. */
fsdp_status gpt_mesh_open(fsdp_context *ctx, const gpt_options *options, gpt_mesh *mesh);
void        gpt_mesh_close(gpt_mesh *mesh);

/** BYTES of the longest text that --axis-strategies takes, with its NUL. */
#define GPT_STRATEGIES_BYTES 160

/** What --axis-strategies says, in the words of the library, which are in capitals. Local. @return NULL where it says nothing */
const char *gpt_mesh_strategies(const gpt_options *options, char text[GPT_STRATEGIES_BYTES]);

/** Rank, among all, of the stage at `stage_rank` that has this rank's samples and part of the layers. Local. */
int gpt_mesh_peer(const gpt_mesh *mesh, int stage_rank);

#endif
