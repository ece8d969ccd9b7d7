/**
 * @file
 * The ranks as a grid: data, tensor and pipeline parallelism.
 */
#ifndef GPT_MESH_H
#define GPT_MESH_H

#include <stddef.h>

#include <fsdp/fsdp.h>

typedef struct gpt_mesh {
    fsdp_mesh    *mesh;
    fsdp_context *all;          /* every rank */
    fsdp_context *dp, *tp, *pp; /* those that differ from this one along this axis only */
} gpt_mesh;

/** Sizes that have been checked: their product is the number of ranks. Collective. Close it in any case. */
fsdp_status gpt_mesh_open(fsdp_context *ctx, size_t dp, size_t tp, size_t pp, gpt_mesh *mesh);
void        gpt_mesh_close(gpt_mesh *mesh);

/** Rank, among all, of the stage at `stage_rank` that has this rank's samples and part of the layers. Local. */
int gpt_mesh_peer(const gpt_mesh *mesh, int stage_rank);

#endif
