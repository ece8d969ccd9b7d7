/** @file Waiting for a message, and giving it up after FSDP_TIMEOUT_S. */
#ifndef FSDPI_PIPELINE_WAIT_H
#define FSDPI_PIPELINE_WAIT_H

#include "shard/pipeline/run/pipeline.h"

typedef struct fsdpi_vigil {
    const fsdpi_action *action; /* at which this rank waits, */
    int                 peer;   /* and for which one; -1: for its GPU */
    double              begun, looked, waited, warned;
    unsigned            looks;
} fsdpi_vigil;

fsdpi_vigil fsdpi_vigil_begin(const fsdpi_action *action, int peer);

/** Behind a look in vain: pauses. FSDP_ERR_TIMEOUT, or what has ended the context: nobody will come. */
fsdp_status fsdpi_vigil_pause(fsdp_pipeline *pipeline, fsdpi_vigil *vigil);

/** Counts how long it has taken. */
void fsdpi_vigil_end(fsdp_pipeline *pipeline, const fsdpi_vigil *vigil);

#endif
