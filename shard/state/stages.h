/**
 * @file
 * What stages of a pipeline tell each other of the parts of a model that they have: bytes of each stage, on every rank.
 */
#ifndef FSDPI_STAGES_H
#define FSDPI_STAGES_H

#include "shard/state/model.h"

/** The bytes of all stages, one behind the other. Zeros: none. */
typedef struct fsdpi_stage_bytes {
    int       n_stages;
    uint64_t *ends; /* of each stage's */
    size_t    total;
    char     *bytes;
} fsdpi_stage_bytes;

/**
 * Every rank has those of its stage; they are taken from the first rank that has it. Collective over the plane of the model. Cost:
 * an allreduce of 8 bytes for each stage, a broadcast of each, and two agreements.
 *
 * @param[in]  status  not FSDP_OK, recorded: this rank has none
 * @param[out] all     freed with fsdpi_stages_free(), in any case
 */
fsdp_status fsdpi_stages_gather(const fsdp_model *model, const char *function, const void *mine, size_t n,
                                fsdp_status status, fsdpi_stage_bytes *all);

void fsdpi_stages_free(const fsdp_model *model, fsdpi_stage_bytes *all);

/** Those of a stage. */
static inline const char *fsdpi_stage_begin(const fsdpi_stage_bytes *all, int stage)
{
    return all->bytes + (stage > 0 ? all->ends[stage - 1] : 0);
}

static inline const char *fsdpi_stage_end(const fsdpi_stage_bytes *all, int stage)
{
    return all->bytes + all->ends[stage];
}

#endif
