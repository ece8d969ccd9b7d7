/*
 * The view is the node's, so each of its ranks copies its part to where it belongs, once all ranks have called for it as
 * they would for a gather: one agreement of all, and no data between nodes. On the host only.
 *
 * Cost for a view of S bytes on a node of L ranks: S / L read and written by each of them, in steps.
 */
#include "shard/storage/kept.h"

#include <string.h>

#include "lib/context/table.h"
#include "shard/state/node_part.h"

enum { GATHER_KEPT_ID = FSDPI_N_COLLECTIVES + 1 }; /* behind that of shard/storage/quantized_host.c */

static size_t view_bytes(const fsdpi_flat *flat)
{
    return flat->layout.padded * fsdp_dtype_size(flat->dtype);
}

/* BYTES of the view: where this rank's part begins, and how long it is. */
static size_t own_part(const fsdpi_flat *flat, size_t *count)
{
    const fsdp_model *model = flat->model;
    const size_t      all = view_bytes(flat), part = fsdpi_node_part(model, &model->plan, all);
    const size_t      begin = (size_t)model->shards->nodes.position * part;

    *count = begin >= all ? 0 : all - begin < part ? all - begin : part;
    return begin < all ? begin : all;
}

void fsdpi_keep_part(fsdpi_flat *flat, const fsdpi_view *view)
{
    size_t       count;
    const size_t begin = own_part(flat, &count);

    memcpy(flat->kept, view->memory + begin, count);
}

/* request->at: BYTES done. */
static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_call *call = &request->call;
    const size_t      left = call->in_bytes - request->at;
    const size_t      n    = left < FSDPI_STEP_BYTES ? left : (size_t)FSDPI_STEP_BYTES;

    if (n == 0) {
        *progress = FSDPI_FINISHED;
        return FSDP_OK;
    }
    memcpy((unsigned char *)call->out + request->at, (const unsigned char *)call->in + request->at, n);
    request->at += n;
    *progress = FSDPI_MOVED;
    return FSDP_OK;
}

static const fsdpi_algorithm from_parts = {.name = "from parts", .advance = advance, .leaves_together = true};

static const fsdpi_algorithm *choose(fsdp_request *request)
{
    (void)request;
    return &from_parts;
}

static const fsdpi_collective GATHER_KEPT = {.name = "gather kept", .id = GATHER_KEPT_ID, .choose = choose};

fsdp_status fsdpi_gather_kept(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view)
{
    size_t           count;
    const size_t     begin = own_part(flat, &count);
    const fsdpi_call call  = {.collective  = &GATHER_KEPT,
                              .name        = purpose->name,
                              .label       = purpose->label,
                              .in          = flat->kept,
                              .in_bytes    = count,
                              .out         = view->memory + begin,
                              .count       = flat->layout.padded,
                              .dtype       = flat->dtype,
                              .is_step     = true,
                              .is_reserved = purpose->reserved};

    return fsdpi_issue(flat->model->shards, &call, FSDP_OK, &view->gathering);
}
