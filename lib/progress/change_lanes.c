#include "lib/progress/change_lanes.h"

#include "lib/progress/queue_inside.h"

/* From the letters of this operation in the lane that it is in, if its ranks have said where their buffers are. */
static void keep_addresses(const fsdp_request *request)
{
    fsdpi_addresses     *all = *request->engine->addresses;
    const fsdpi_mailbox *box = &request->lane->box;

    for (int p = 0; p < request->engine->nodes->size && (request->flags & FSDPI_FLAG_PLACES) != 0; p++) {
        all[p] = fsdpi_letter_of(box, p, request->number)->at;
    }
}

static void enter(fsdp_request *request)
{
    request->lane   = &request->engine->lanes[FSDPI_LANE_LONG];
    request->number = request->lane->box.number + 1;
}

void fsdpi_change_lanes(fsdp_request *request)
{
    fsdpi_queue *queue   = request->queue;
    const bool   at_once = request->is_still && !request->call.on_device;

    if (at_once) {
        keep_addresses(request);
        enter(request);
        request->lane->box.number = request->number; /* of a letter that nobody needs */
    }
    fsdpi_queue_lock(queue);
    (void)fsdpi_line_remove(&queue->lines[FSDPI_LANE_SHORT]);
    fsdpi_line_append(&queue->lines[FSDPI_LANE_LONG], request);
    fsdpi_queue_unlock(queue);
    atomic_store_explicit(&request->state, at_once ? FSDPI_REQUEST_MOVING : FSDPI_REQUEST_AGREED, memory_order_relaxed);
}

void fsdpi_meet_in_lane(fsdp_request *request)
{
    enter(request);

    fsdpi_mailbox *box    = &request->lane->box;
    fsdpi_letter  *letter = fsdpi_letter_of(box, request->engine->nodes->position, request->number);
    if (request->ops != NULL && request->ops->begin != NULL && request->verdict.status == FSDP_OK) {
        request->ops->begin(request);
    }
    fsdpi_write_opinion(letter, &(fsdpi_opinion){.flags = FSDPI_FLAG_SAME | FSDPI_FLAG_ONE_PLACE});
    letter->at = request->buffers_at;
    fsdpi_mailbox_post(box, letter, request->number);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_MEETING, memory_order_relaxed);
}

bool fsdpi_have_met_in_lane(fsdp_request *request)
{
    if (!fsdpi_mailbox_arrived(&request->lane->box, request->number)) {
        return false;
    }
    keep_addresses(request);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_MOVING, memory_order_relaxed);
    return true;
}
