#include "lib/sync/link.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/yielding.h"

/* As large as the largest pieces; the first try sets up the connection, and the fastest is the least disturbed one. */
enum { BYTES = 256 << 10, TRIES = 4 };

static fsdp_status wait_for(fsdpi_messages *messages)
{
    static const double NAP   = 50e-6;
    const double        begin = fsdpi_seconds();
    const int           most  = messages->core->config.timeout_s;
    bool                done  = false;

    for (unsigned polls = 0; !done; polls++) {
        FSDP_TRY(fsdpi_messages_complete(messages, &done));
        const double waited = fsdpi_seconds() - begin;
        if (!done && most > 0 && waited > most) {
            return fsdpi_fail(messages->core->ctx, FSDP_ERR_TIMEOUT,
                              "fsdp_init: the first messages between nodes have not come within FSDP_TIMEOUT_S=%d "
                              "seconds; look at the network, and at what MPI uses of it",
                              most);
        }
        if (!done && !fsdpi_back_off(polls, waited, FSDPI_YIELDING_SECONDS)) {
            fsdpi_nap(NAP);
        }
    }
    return FSDP_OK;
}

/* SECONDS of the fastest of some exchanges with the neighbours. */
static fsdp_status exchange(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_messages *messages, double *best)
{
    unsigned char *out = fsdpi_rest_of(box, 0), *in = out + BYTES;
    const int      next = fsdpi_rank_at(nodes, (nodes->mine + 1) % nodes->count, 0);
    const int      last = fsdpi_rank_at(nodes, (nodes->mine + nodes->count - 1) % nodes->count, 0);

    for (int i = 0; i < TRIES; i++) {
        const double begin = fsdpi_seconds();
        FSDP_TRY(fsdpi_post_receive(messages, in, BYTES, last, FSDPI_TAG_RECORDS));
        FSDP_TRY(fsdpi_post_send(messages, out, BYTES, next, FSDPI_TAG_RECORDS));
        FSDP_TRY(wait_for(messages));
        const double seconds = fsdpi_seconds() - begin;
        *best                = i == 0 || seconds < *best ? seconds : *best;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_link_measure(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_messages *messages,
                               fsdpi_link *link)
{
    const fsdpi_core *core    = messages->core;
    double            seconds = 0;

    if (nodes->count == 1 || box->rest_bytes < (size_t)2 * BYTES) {
        return FSDP_OK;
    }
    if (nodes->position == 0) {
        FSDP_TRY(exchange(nodes, box, messages, &seconds));
    }
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(&seconds, 1, MPI_DOUBLE, MPI_MAX, core->comm, core->config.timeout_s));
    link->rate = seconds > 0 ? BYTES / seconds : 0;
    return FSDP_OK;
}
