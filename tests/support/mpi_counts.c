#include "tests/support/mpi_counts.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- counting ------------------------------------------------------------------------------------------------------ */

typedef _Atomic uint64_t counter;

static counter messages, bytes_sent, receives, longest, collectives, under_way, most_under_way;
static counter messages_to[MPI_COUNTS_RANKS], bytes_to[MPI_COUNTS_RANKS], receives_from[MPI_COUNTS_RANKS];

static void raise_to(counter *most, uint64_t value)
{
    uint64_t before = atomic_load(most);

    while (before < value && !atomic_compare_exchange_weak(most, &before, value)) {
    }
}

static bool has_counts(int rank)
{
    return rank >= 0 && rank < MPI_COUNTS_RANKS;
}

static void note_send(int count, MPI_Datatype type, int to)
{
    int width = 0;

    (void)PMPI_Type_size(type, &width);
    const uint64_t bytes = (uint64_t)count * (uint64_t)width;
    messages++;
    bytes_sent += bytes;
    raise_to(&longest, bytes);
    if (has_counts(to)) {
        messages_to[to]++;
        bytes_to[to] += bytes;
    }
}

static void note_receive(int from)
{
    receives++;
    if (has_counts(from)) {
        receives_from[from]++;
    }
}

/* Passes on MPI's code. */
static int note_begun(int code)
{
    if (code == MPI_SUCCESS) {
        raise_to(&most_under_way, ++under_way);
    }
    return code;
}

static int note_collective(int code)
{
    collectives++;
    return code;
}

/* ---- persistent receives: by one thread at a time, as the library's are ---------------------------------------------- */

enum { MOST_KEPT = 64 };

static struct {
    MPI_Request request;
    int         from;
    bool        active;
} kept[MOST_KEPT];
static int n_kept;

/* Where it is among them; n_kept: it is not. */
static int find_kept(MPI_Request request)
{
    int i = 0;

    while (i < n_kept && kept[i].request != request) {
        i++;
    }
    return i;
}

/* It keeps its handle when it is over. */
static void look_at_kept(MPI_Request request)
{
    const int i    = find_kept(request);
    int       over = 0;

    if (i < n_kept && kept[i].active) {
        (void)PMPI_Request_get_status(request, &over, MPI_STATUS_IGNORE);
        kept[i].active = over == 0;
    }
}

static bool is_active(MPI_Request request)
{
    const int i = find_kept(request);

    return i < n_kept ? kept[i].active : request != MPI_REQUEST_NULL;
}

static uint64_t n_active(int n, const MPI_Request *requests)
{
    uint64_t active = 0;

    for (int i = 0; i < n; i++) {
        active += is_active(requests[i]);
    }
    return active;
}

/* MPI makes requests null that are over, but for persistent ones: of the `before` some are left. */
static int note_ended(int code, uint64_t before, int n, const MPI_Request *requests)
{
    for (int i = 0; i < n; i++) {
        look_at_kept(requests[i]);
    }
    under_way -= before - n_active(n, requests);
    return code;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

void mpi_counts_reset(void)
{
    messages = bytes_sent = receives = longest = collectives = 0;
    most_under_way                                           = under_way;
    for (int r = 0; r < MPI_COUNTS_RANKS; r++) {
        messages_to[r] = bytes_to[r] = receives_from[r] = 0;
    }
}

mpi_counts mpi_counts_now(void)
{
    return (mpi_counts){messages, bytes_sent, receives, longest, collectives, under_way, most_under_way};
}

mpi_counts_of_peer mpi_counts_with(int rank)
{
    return (mpi_counts_of_peer){messages_to[rank], bytes_to[rank], receives_from[rank]};
}

/* ---- in front of MPI: messages --------------------------------------------------------------------------------------- */

/* The checker looks for waits beside these calls. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    note_send(count, type, to);
    return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    note_send(count, type, to);
    return note_begun(PMPI_Isend(data, count, type, to, tag, comm, request));
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    note_receive(from);
    return PMPI_Recv(data, count, type, from, tag, comm, status);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    note_receive(from);
    return note_begun(PMPI_Irecv(data, count, type, from, tag, comm, request));
}

int MPI_Recv_init(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    const int code = PMPI_Recv_init(data, count, type, from, tag, comm, request);

    if (n_kept == MOST_KEPT) {
        (void)fprintf(stderr, "mpi_counts: more than %d persistent receives; raise MOST_KEPT\n", MOST_KEPT);
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (code == MPI_SUCCESS) {
        kept[n_kept].request  = *request;
        kept[n_kept].from     = from;
        kept[n_kept++].active = false;
    }
    return code;
}

int MPI_Start(MPI_Request *request)
{
    const int i    = find_kept(*request);
    const int code = note_begun(PMPI_Start(request));

    if (i < n_kept) {
        note_receive(kept[i].from);
        kept[i].request = *request;
        kept[i].active  = true;
    }
    return code;
}

int MPI_Request_free(MPI_Request *request)
{
    const int i = find_kept(*request);

    if (i < n_kept) {
        kept[i] = kept[--n_kept];
    }
    return PMPI_Request_free(request);
}

/* ---- collectives ----------------------------------------------------------------------------------------------------- */

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return note_collective(PMPI_Allreduce(in, out, count, type, op, comm));
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    return note_collective(note_begun(PMPI_Iallreduce(in, out, count, type, op, comm, request)));
}

int MPI_Iallgather(const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
                   MPI_Comm comm, MPI_Request *request)
{
    return note_collective(note_begun(PMPI_Iallgather(in, count, type, out, out_count, out_type, comm, request)));
}

int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    return note_collective(note_begun(PMPI_Ibcast(data, count, type, root, comm, request)));
}

int MPI_Barrier(MPI_Comm comm)
{
    return note_collective(PMPI_Barrier(comm));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    return note_collective(note_begun(PMPI_Ibarrier(comm, request)));
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *copy, MPI_Request *request)
{
    return note_collective(note_begun(PMPI_Comm_idup(comm, copy, request)));
}

/* ---- waiting --------------------------------------------------------------------------------------------------------- */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const uint64_t before = n_active(1, request);

    return note_ended(PMPI_Wait(request, status), before, 1, request);
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    const uint64_t before = n_active(n, requests);

    return note_ended(PMPI_Waitall(n, requests, statuses), before, n, requests);
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    const uint64_t before = n_active(1, request);

    return note_ended(PMPI_Test(request, done, status), before, 1, request);
}

int MPI_Testall(int n, MPI_Request requests[], int *done, MPI_Status statuses[])
{
    const uint64_t before = n_active(n, requests);

    return note_ended(PMPI_Testall(n, requests, done, statuses), before, n, requests);
}

int MPI_Testsome(int n, MPI_Request requests[], int *n_done, int done[], MPI_Status statuses[])
{
    const uint64_t before = n_active(n, requests);

    return note_ended(PMPI_Testsome(n, requests, n_done, done, statuses), before, n, requests);
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
