/*
 * Messages between nodes, by MPI. Receives begin before the schedule comes to them, as far as there are places, so that data arrives
 * while the rank computes. A tag is of one micro-batch between two stages. What is spoiled is sent without a byte.
 */
#include "shard/pipeline/run/pipeline.h"

/* BYTES of a piece of that many; of the last one what is left. */
static int length_of(size_t piece, size_t bytes, int i)
{
    const size_t left = bytes - (size_t)i * piece;

    return (int)(left < piece ? left : piece);
}

static fsdp_status send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    const unsigned char *memory = fsdpi_shelf_memory(&box->shelf, place);

    for (int i = 0; i < box->pieces; i++) {
        FSDPI_TRY_MPI(pipeline->ctx, MPI_Isend(memory + (size_t)i * box->piece,
                                               pipeline->spoiled ? 0 : length_of(box->piece, box->shelf.bytes, i),
                                               MPI_BYTE, box->peer, box->tag + box->shelf.micro[place], pipeline->comm,
                                               &box->requests[place * box->pieces + i]));
    }
    return FSDP_OK;
}

static fsdp_status ask(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *received)
{
    int all = 0;

    FSDPI_TRY_MPI(pipeline->ctx,
                  MPI_Testall(box->pieces, &box->requests[place * box->pieces], &all, MPI_STATUSES_IGNORE));
    *received = all != 0;
    return FSDP_OK;
}

static fsdp_status begin(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro)
{
    unsigned char *memory = fsdpi_shelf_take(&box->shelf, micro);
    const int      place  = fsdpi_shelf_find(&box->shelf, micro);

    for (int i = 0; i < box->pieces; i++) {
        FSDPI_TRY_MPI(pipeline->ctx,
                      MPI_Irecv(memory + (size_t)i * box->piece, length_of(box->piece, box->shelf.bytes, i), MPI_BYTE,
                                box->peer, box->tag + micro, pipeline->comm, &box->requests[place * box->pieces + i]));
    }
    return FSDP_OK;
}

static fsdp_status expect(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    while (box->n_begun < box->n_order && fsdpi_shelf_find(&box->shelf, -1) >= 0) {
        FSDP_TRY(begin(pipeline, box, box->order[box->n_begun++]));
    }
    return FSDP_OK;
}

/* Pieces are looked at from the first on: the others of what is spoiled have no byte either. */
static fsdp_status look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    const int    place    = fsdpi_shelf_find(&box->shelf, micro);
    MPI_Request *requests = &box->requests[place * box->pieces];

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

const fsdpi_way fsdpi_way_far = {.send = send, .ask = ask, .expect = expect, .look = look};
