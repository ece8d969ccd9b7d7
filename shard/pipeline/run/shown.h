/**
 * @file
 * Where boxes lie in what ranks of a node see of each other: any rank can work that out for any other.
 *
 * In memory of the host, stage by stage: the notes of what leaves, and behind them the places themselves. Where activations are in GPU
 * memory, places lie in that, in the same order, and handles of events take their place: one for each of the sender's places, of
 * outboxes and of inboxes.
 */
#ifndef FSDPI_PIPELINE_SHOWN_H
#define FSDPI_PIPELINE_SHOWN_H

#include "shard/pipeline/run/plan.h"

/** BYTES of what flows there with one micro-batch. */
size_t fsdpi_flow_bytes(const fsdpi_pipeline_plan *plan, int stage, int flow);

/** Whether messages to and from a rank go through memory that both see. */
bool fsdpi_is_near(const fsdp_pipeline *pipeline, int peer);

/** Places of the outbox that a stage's inbox is filled from. */
int fsdpi_senders_places(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow);

/** Where a box begins in what its rank, which is on this node, shows in the host's memory; and, of outboxes, in its GPU's. */
size_t fsdpi_shown_begin(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow);
size_t fsdpi_offered_begin(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow);

#endif
