/** @file From a pipeline's options to a schedule that is proved to work. */
#ifndef FSDPI_PIPELINE_PROVEN_H
#define FSDPI_PIPELINE_PROVEN_H

#include "fsdp/pipeline.h"
#include "shard/pipeline/simulate.h"

typedef struct fsdpi_proven {
    fsdpi_schedule   schedule; /* lowered */
    fsdpi_passes     passes;   /* of it */
    fsdpi_simulation run;
    fsdpi_flaw       flaw;
} fsdpi_proven;

/**
 * Local.
 * @return FSDP_OK; FSDP_ERR_ARG: options or schedule are no good; FSDP_ERR_IO: the file cannot be read; FSDP_ERR_MEMORY. Recorded for an
 *         agreement to print. `source` is to be closed whatever is returned
 */
fsdp_status fsdpi_proven_open(fsdpi_proven *source, fsdp_context *ctx, const fsdp_pipeline_options *options);
void        fsdpi_proven_close(fsdpi_proven *source);

/** Shows what ranks do around the place of a flaw, if it has one: in the detail of the last failure, and in the log of rank 0. */
void fsdpi_proven_show_flaw(const fsdpi_proven *source, fsdp_context *ctx, fsdp_status status);

/** A fingerprint of all that is done. */
uint64_t fsdpi_proven_hash(const fsdpi_proven *source);

#endif
