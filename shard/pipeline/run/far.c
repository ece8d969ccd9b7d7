/*
 * Messages between nodes, by MPI. Receives begin before the schedule comes to them, as far as there are places, so that data arrives
 * while the rank computes. A tag is of one micro-batch between two stages. What is spoiled is sent without a byte.
 */
#include "shard/pipeline/run/far.h"

/* ---- one message ----------------------------------------------------------------------------------------------------------- */

/* BYTES of a piece of that many; of the last one what is left. */
static int length_of(size_t piece, size_t bytes, int i)
{
    const size_t left = bytes - (size_t)i * piece;

    return (int)(left < piece ? left : piece);
}

fsdp_status fsdpi_far_send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, const unsigned char *memory,
                           bool spoiled)
{
    for (int i = 0; i < box->pieces; i++) {
        FSDPI_TRY_MPI(pipeline->ctx, MPI_Isend(memory + (size_t)i * box->piece,
                                               spoiled ? 0 : length_of(box->piece, box->shelf.bytes, i), MPI_BYTE,
                                               box->peer, box->tag + box->shelf.micro[place], pipeline->comm,
                                               &box->requests[place * box->pieces + i]));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_far_is_sent(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *sent)
{
    int all = 0;

    FSDPI_TRY_MPI(pipeline->ctx,
                  MPI_Testall(box->pieces, &box->requests[place * box->pieces], &all, MPI_STATUSES_IGNORE));
    *sent = all != 0;
    return FSDP_OK;
}

fsdp_status fsdpi_far_receive(fsdp_pipeline *pipeline, fsdpi_inbox *box, int slot, unsigned char *memory, int micro)
{
    for (int i = 0; i < box->pieces; i++) {
        FSDPI_TRY_MPI(pipeline->ctx,
                      MPI_Irecv(memory + (size_t)i * box->piece, length_of(box->piece, box->shelf.bytes, i), MPI_BYTE,
                                box->peer, box->tag + micro, pipeline->comm, &box->requests[slot * box->pieces + i]));
    }
    return FSDP_OK;
}

/* Pieces are looked at from the first on: the others of what is spoiled have no byte either. */
fsdp_status fsdpi_far_look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int slot, bool *there, bool *spoiled)
{
    MPI_Request *requests = &box->requests[slot * box->pieces];

    *there = true;
    for (int i = 0; i < box->pieces && *there; i++) {
        int        done = 0, bytes = 0;
        MPI_Status status;

        if (requests[i] == MPI_REQUEST_NULL) {
            continue;
        }
        FSDPI_TRY_MPI(pipeline->ctx, MPI_Test(&requests[i], &done, &status));
        *there = done != 0;
        if (done) {
            FSDPI_TRY_MPI(pipeline->ctx, MPI_Get_count(&status, MPI_BYTE, &bytes));
            *spoiled = *spoiled || bytes == 0;
        }
    }
    return FSDP_OK;
}

/* ---- of host memory ---------------------------------------------------------------------------------------------------------- */

static fsdp_status send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    return fsdpi_far_send(pipeline, box, place, fsdpi_shelf_memory(&box->shelf, place), pipeline->spoiled);
}

static fsdp_status expect(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    while (box->n_begun < box->n_order && fsdpi_shelf_find(&box->shelf, -1) >= 0) {
        const int      micro  = box->order[box->n_begun++];
        unsigned char *memory = fsdpi_shelf_take(&box->shelf, micro);

        FSDP_TRY(fsdpi_far_receive(pipeline, box, fsdpi_shelf_find(&box->shelf, micro), memory, micro));
    }
    return FSDP_OK;
}

static fsdp_status look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    return fsdpi_far_look(pipeline, box, fsdpi_shelf_find(&box->shelf, micro), there, spoiled);
}

const fsdpi_way fsdpi_way_far = {.send = send, .ask = fsdpi_far_is_sent, .expect = expect, .look = look};
