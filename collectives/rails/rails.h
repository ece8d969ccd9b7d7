/**
 * @file
 * Collectives across nodes, on all rails at once and in chunks.
 *
 * Reduction: for each part of the vector that belongs to a rank of another node, one rank of this node, the one at the
 * same position, reduces the node's inputs and sends the partial result there; the owner reduces the M partial results
 * in the order of the nodes. Gathering: each rank sends its part to the rank at its position on every other node, straight
 * to where it belongs in the result, and the ranks of a node copy from each other what has landed. Where nodes differ in
 * their numbers of ranks, positions wrap around. Several chunks are under way together, so that reducing, sending and
 * copying overlap; an allreduce gathers a chunk as soon as it is final. collectives/rails/schedule.h says which chunk goes
 * where, and when.
 *
 * Cost for S bytes on M nodes of L ranks: each node sends and receives (M-1)/M S for each of the two, all ranks a share
 * of 1/L of it; (M-1) chunks before the last one is final. What is kept of them, and staging memory, do not grow with M: where
 * there is no room for a chunk of every node, chunks come in the order of the nodes and are reduced as they come.
 *
 * As a ring, parts travel from node to node instead of from their owner to each: the same bytes, one neighbour.
 *
 * Two ranks may each send the whole vector and reduce it (FSDPI_WHOLE): an allreduce then needs no gathering.
 *
 * Collecting, each rank reduces its part as for a reduction, and sends it to one root instead of gathering.
 *
 * Exchanging, each rank sends a block to each other one, some at a time.
 *
 * What differs between host and GPU is in collectives/rails/host.c and collectives/rails/device.c.
 */
#ifndef FSDPI_COLLECTIVES_RAILS_H
#define FSDPI_COLLECTIVES_RAILS_H

#include "collectives/rails/awaited.h"
#include "collectives/rails/route.h"
#include "lib/progress/queue.h"

/** For fsdpi_algorithm::advance; `route` are fsdpi_route. */
fsdp_status fsdpi_rails_advance(fsdp_request *request, unsigned route, fsdpi_progress *progress);

#endif
