/** @file One message between nodes, by MPI, in pieces: from and to whatever memory MPI is given. */
#ifndef FSDPI_PIPELINE_FAR_H
#define FSDPI_PIPELINE_FAR_H

#include "shard/pipeline/run/pipeline.h"

/** Sends what is at `memory`, which a place stands for; where `spoiled`, not a byte of it. */
fsdp_status fsdpi_far_send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, const unsigned char *memory,
                           bool spoiled);

/** Receives a micro-batch into `memory`. `slot`: of the box's requests, in which the pieces of one message lie together. */
fsdp_status fsdpi_far_receive(fsdp_pipeline *pipeline, fsdpi_inbox *box, int slot, unsigned char *memory, int micro);

/** Whether all of it has come; `spoiled` is set or left. */
fsdp_status fsdpi_far_look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int slot, bool *there, bool *spoiled);

/** Whether what a place stands for has been sent. */
fsdp_status fsdpi_far_is_sent(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *sent);

#endif
