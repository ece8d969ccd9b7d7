#include "lib/sync/link.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/yielding.h"
#include "lib/sync/messages.h"

/* As large as the largest pieces; the first try sets up the connection, and the fastest is the least disturbed one. */
enum { BYTES = 256 << 10, TRIES = 4 };

/* fsdpi_mpi_wait() tests a request until it is complete, which the checker does not take for a wait. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

static fsdp_status exchange_once(const fsdpi_core *core, unsigned char *memory, int to, int from)
{
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;

    FSDPI_TRY_MPI(core->ctx, MPI_Irecv(memory + BYTES, BYTES, MPI_BYTE, from, FSDPI_TAG_RECORDS, core->comm, &receive));
    FSDPI_TRY_MPI(core->ctx, MPI_Isend(memory, BYTES, MPI_BYTE, to, FSDPI_TAG_RECORDS, core->comm, &send));
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&receive, core->config.timeout_s));
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&send, core->config.timeout_s));
    return FSDP_OK;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* SECONDS of the fastest of some exchanges with the neighbours. */
static fsdp_status time_exchanges(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double *best)
{
    const int next = fsdpi_rank_at(nodes, (nodes->mine + 1) % nodes->count, 0);
    const int last = fsdpi_rank_at(nodes, (nodes->mine + nodes->count - 1) % nodes->count, 0);

    for (int i = 0; i < TRIES; i++) {
        const double begin = fsdpi_seconds();
        FSDP_TRY(exchange_once(box->core, fsdpi_rest_of(box, 0), next, last));
        const double seconds = fsdpi_seconds() - begin;
        *best                = i == 0 || seconds < *best ? seconds : *best;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_link_measure(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_link *link)
{
    const fsdpi_core *core    = box->core;
    double            seconds = 0;

    if (nodes->count == 1 || box->rest_bytes < (size_t)2 * BYTES) {
        return FSDP_OK;
    }
    if (nodes->position == 0) {
        FSDP_TRY(time_exchanges(nodes, box, &seconds));
    }
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(&seconds, 1, MPI_DOUBLE, MPI_MAX, core->comm, core->config.timeout_s));
    link->rate = seconds > 0 ? BYTES / seconds : 0;
    return FSDP_OK;
}
