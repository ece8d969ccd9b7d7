#include "lib/base/yielding.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/side_work.h"

/*
 * What an operation works on. Apart from the caller's memory, since MPI may still write there when the caller has given up:
 * then it stays for good.
 */
typedef struct operation {
    struct operation *next;
    MPI_Request       request;
    MPI_Comm          comm; /* that is made */
    unsigned char     data[];
} operation;

static _Atomic(operation *) given_up;

static size_t bytes_of(int count, MPI_Datatype type)
{
    int width = 0;

    (void)MPI_Type_size(type, &width);
    return (size_t)count * (size_t)width;
}

static operation *prepare(const void *data, size_t bytes, size_t room)
{
    operation *made = malloc(sizeof *made + room);

    if (made != NULL) {
        *made = (operation){.request = MPI_REQUEST_NULL, .comm = MPI_COMM_NULL};
        if (bytes > 0) {
            memcpy(made->data, data, bytes);
        }
    }
    return made;
}

int fsdpi_mpi_wait(MPI_Request *request, int timeout_s)
{
    static const double NAP   = 50e-6;
    double              begin = fsdpi_seconds();
    int                 done = 0, code = MPI_SUCCESS;

    for (unsigned polls = 0; code == MPI_SUCCESS; polls++) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) {
            break;
        }
        if (fsdpi_side_work_advance(NULL) == FSDPI_MOVED) {
            begin = fsdpi_seconds();
            polls = 0;
        }
        const double waited = fsdpi_seconds() - begin;
        if (timeout_s > 0 && waited > timeout_s) {
            return MPI_ERR_PENDING;
        }
        if (!fsdpi_back_off(polls, waited, FSDPI_YIELDING_SECONDS)) {
            fsdpi_nap(NAP);
        }
    }
    return code;
}

/* Waits for what has been started, unless `code` says that it has not been. */
static int wait_for(operation *o, int code, int timeout_s)
{
    return code == MPI_SUCCESS ? fsdpi_mpi_wait(&o->request, timeout_s) : code;
}

/* Ends with `code`, and with `bytes` of what has come to `data`. */
static int finish(operation *o, int code, void *data, size_t bytes)
{
    if (code == MPI_ERR_PENDING) {
        o->next = atomic_load(&given_up);
        while (!atomic_compare_exchange_weak(&given_up, &o->next, o)) {
        }
        return code;
    }
    if (code == MPI_SUCCESS && bytes > 0) {
        memcpy(data, o->data, bytes);
    }
    free(o);
    return code;
}

/* wait_for() tests a request until it is complete, which the checker does not take for a wait. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

int fsdpi_mpi_allreduce(void *data, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, int timeout_s)
{
    const size_t bytes = bytes_of(count, type);
    operation   *o     = prepare(data, bytes, bytes);

    if (o == NULL) {
        return MPI_ERR_NO_MEM;
    }
    return finish(o, wait_for(o, MPI_Iallreduce(MPI_IN_PLACE, o->data, count, type, op, comm, &o->request), timeout_s),
                  data, bytes);
}

int fsdpi_mpi_allgather(const void *mine, void *all, int count, MPI_Datatype type, MPI_Comm comm, int timeout_s)
{
    const size_t bytes = bytes_of(count, type);
    int          size  = 0;

    (void)MPI_Comm_size(comm, &size);
    const size_t whole = (size_t)size * bytes;
    operation   *o     = prepare(NULL, 0, whole + bytes);
    if (o == NULL) {
        return MPI_ERR_NO_MEM;
    }
    memcpy(o->data + whole, mine, bytes);
    return finish(
        o,
        wait_for(o, MPI_Iallgather(o->data + whole, count, type, o->data, count, type, comm, &o->request), timeout_s),
        all, whole);
}

int fsdpi_mpi_broadcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, int timeout_s)
{
    const size_t bytes = bytes_of(count, type);
    operation   *o     = prepare(data, bytes, bytes);

    if (o == NULL) {
        return MPI_ERR_NO_MEM;
    }
    return finish(o, wait_for(o, MPI_Ibcast(o->data, count, type, root, comm, &o->request), timeout_s), data, bytes);
}

int fsdpi_mpi_barrier(MPI_Comm comm, int timeout_s)
{
    operation *o = prepare(NULL, 0, 0);

    return o != NULL ? finish(o, wait_for(o, MPI_Ibarrier(comm, &o->request), timeout_s), NULL, 0) : MPI_ERR_NO_MEM;
}

int fsdpi_mpi_duplicate(MPI_Comm comm, MPI_Comm *copy, int timeout_s)
{
    operation *o = prepare(NULL, 0, 0);

    *copy = MPI_COMM_NULL;
    if (o == NULL) {
        return MPI_ERR_NO_MEM;
    }
    const int code = wait_for(o, MPI_Comm_idup(comm, &o->comm, &o->request), timeout_s);
    if (code == MPI_SUCCESS) {
        *copy = o->comm;
    }
    return finish(o, code, NULL, 0);
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
