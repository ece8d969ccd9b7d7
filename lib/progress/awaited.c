#include "lib/progress/awaited.h"

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
    const fsdpi_engine *engine = request->engine;

    return (state == FSDPI_REQUEST_EXCHANGING_DETAILS || state == FSDPI_REQUEST_MOVING) && engine->messages->n > 0 &&
           !engine->exchange->posted;
}

void fsdpi_awaited(const fsdp_request *request, fsdpi_rank_list *list)
{
    const fsdpi_engine *engine = request->engine;
    const int           state  = atomic_load_explicit(&request->state, memory_order_relaxed);
    const int           leader = fsdpi_exchange_awaited(engine->exchange);

    fsdpi_mailbox_awaited(engine->box, list);
    if (leader >= 0) {
        fsdpi_rank_list_add(list, leader);
    }
    if (state == FSDPI_REQUEST_MOVING && request->algorithm->awaited != NULL) {
        request->algorithm->awaited(request, list);
    }
    if (waits_for_a_collective(request, state)) {
        fsdpi_neighbours(engine->core, list);
    }
}
