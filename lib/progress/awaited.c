#include "lib/progress/awaited.h"

#include "lib/sync/pairs.h"

void fsdpi_neighbours(const fsdpi_core *core, fsdpi_rank_list *list)
{
    for (int64_t step = 1; step < core->size; step *= 2) {
        fsdpi_rank_list_add(list, (int)((core->rank + step) % core->size));
        fsdpi_rank_list_add(list, (int)((core->rank - step + core->size) % core->size));
    }
}

/* MPI's own collectives do not tell whom they wait for. */
static bool waits_for_a_collective(const fsdp_request *request, int state)
{
    return (state == FSDPI_REQUEST_EXCHANGING_DETAILS ||
            (state == FSDPI_REQUEST_MOVING && !request->algorithm->is_rider)) &&
           request->lane->messages.n > 0 && !request->lane->exchange.posted;
}

/* For the heads of other nodes, for what follows them, or until they have taken what this one sends. */
static bool waits_for_pairs(const fsdp_request *request, int state)
{
    return request->lane->exchange.in_pairs &&
           (state == FSDPI_REQUEST_ASKING_NODES ||
            (state == FSDPI_REQUEST_MOVING && request->algorithm->is_rider && request->lane->messages.n > 0));
}

/* Of the exchange under way, if this rank is a leader and there is one. */
static void add_leaders(const fsdp_request *request, int state, fsdpi_rank_list *list)
{
    const fsdpi_exchange *exchange = &request->lane->exchange;
    const bool            in_pairs = waits_for_pairs(request, state);
    const int             leader   = in_pairs ? -1 : fsdpi_exchange_awaited(exchange);

    if (in_pairs) {
        fsdpi_pairs_awaited(exchange, list);
    }
    if (leader >= 0) {
        fsdpi_rank_list_add(list, leader);
    }
}

void fsdpi_awaited(const fsdp_request *request, fsdpi_rank_list *list)
{
    const fsdpi_engine *engine = request->engine;
    const int           state  = atomic_load_explicit(&request->state, memory_order_relaxed);

    fsdpi_mailbox_awaited(&request->lane->box, list);
    add_leaders(request, state, list);
    if (state == FSDPI_REQUEST_MOVING && request->algorithm->awaited != NULL) {
        request->algorithm->awaited(request, list);
    }
    if (waits_for_a_collective(request, state)) {
        fsdpi_neighbours(engine->core, list);
    }
}
