#include "tests/gpu/device_mpi.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/hip/double.h"

enum { MOST = 4096 };

/* A message of device memory that is under way, through a copy of it. */
typedef struct passage {
    MPI_Request request;
    void       *to; /* of one that is received; NULL */
    void       *copy;
    size_t      bytes;
} passage;

static passage         passages[MOST];
static size_t          messages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char     *kinds_said, *version_said;

size_t device_mpi_messages(void)
{
    return messages;
}

void device_mpi_says(const char *kinds, const char *version)
{
    kinds_said   = kinds;
    version_said = version;
}

static bool is_on_device(const void *memory)
{
    const double_memory *found = double_memory_of(memory);

    return found != NULL && double_memory_device(found) >= 0;
}

static void refuse(const void *memory, const char *call)
{
    if (is_on_device(memory)) {
        double_mistake("%s is given device memory", call);
    }
}

/* A copy for a message of device memory; NULL for any other. */
static void *copy_for(const void *memory, size_t bytes, const char *call)
{
    const char *aware = getenv("FSDP_GPU_AWARE_MPI");

    if (aware == NULL || strcmp(aware, "on") != 0) {
        refuse(memory, call);
        return NULL;
    }
    return is_on_device(memory) ? malloc(bytes) : NULL;
}

static void move(void *to, const void *from, size_t bytes)
{
    if (hipMemcpy(to, from, bytes, hipMemcpyDefault) != hipSuccess) {
        double_mistake("MPI cannot copy device memory");
    }
}

static void remember(MPI_Request request, void *to, void *copy, size_t bytes)
{
    size_t i = 0;

    (void)pthread_mutex_lock(&lock);
    while (i < MOST && passages[i].copy != NULL) {
        i++;
    }
    if (i == MOST) {
        double_mistake("more than %d messages of device memory", MOST);
    }
    passages[i] = (passage){.request = request, .to = to, .copy = copy, .bytes = bytes};
    messages++;
    (void)pthread_mutex_unlock(&lock);
}

static void complete(MPI_Request request)
{
    passage ended = {0};

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST; i++) {
        if (passages[i].copy != NULL && passages[i].request == request) {
            ended       = passages[i];
            passages[i] = (passage){0};
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (ended.to != NULL) {
        move(ended.to, ended.copy, ended.bytes);
    }
    free(ended.copy);
}

/* ---- MPI's functions: those that the library gives memory ---------------------------------------------------------- */

int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    void *copy = copy_for(data, (size_t)count, __func__);

    if (copy == NULL) {
        return PMPI_Isend(data, count, type, peer, tag, comm, request);
    }
    move(copy, data, (size_t)count);
    const int code = PMPI_Isend(copy, count, type, peer, tag, comm, request);
    remember(*request, NULL, copy, (size_t)count);
    return code;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    void     *copy = copy_for(data, (size_t)count, __func__);
    const int code = PMPI_Irecv(copy != NULL ? copy : data, count, type, peer, tag, comm, request);

    if (copy != NULL) {
        remember(*request, data, copy, (size_t)count);
    }
    return code;
}

int MPI_Testsome(int n, MPI_Request *requests, int *n_done, int *done, MPI_Status *statuses)
{
    MPI_Request *before = malloc((size_t)(n > 0 ? n : 1) * sizeof(MPI_Request));

    memcpy(before, requests, (size_t)n * sizeof(MPI_Request));
    const int code = PMPI_Testsome(n, requests, n_done, done, statuses);
    for (int i = 0; *n_done != MPI_UNDEFINED && i < *n_done; i++) {
        complete(before[done[i]]);
    }
    free(before);
    return code;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    MPI_Request before = *request;
    const int   code   = PMPI_Test(request, done, status);

    if (*done) {
        complete(before);
    }
    return code;
}

int MPI_Testall(int n, MPI_Request *requests, int *all, MPI_Status *statuses)
{
    MPI_Request *before = malloc((size_t)(n > 0 ? n : 1) * sizeof(MPI_Request));

    memcpy(before, requests, (size_t)n * sizeof(MPI_Request));
    const int code = PMPI_Testall(n, requests, all, statuses);
    for (int i = 0; *all && i < n; i++) {
        complete(before[i]);
    }
    free(before);
    return code;
}

int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    refuse(data, __func__);
    return PMPI_Ibcast(data, count, type, root, comm, request);
}

int MPI_Iallgather(const void *in, int n_in, MPI_Datatype in_type, void *out, int n_out, MPI_Datatype out_type,
                   MPI_Comm comm, MPI_Request *request)
{
    refuse(in, __func__);
    refuse(out, __func__);
    return PMPI_Iallgather(in, n_in, in_type, out, n_out, out_type, comm, request);
}

/* ---- what it says of itself ---------------------------------------------------------------------------------------- */

int MPI_Comm_get_info(MPI_Comm comm, MPI_Info *info)
{
    const int code = PMPI_Comm_get_info(comm, info);

    if (code == MPI_SUCCESS && kinds_said != NULL) {
        return MPI_Info_set(*info, "mpi_memory_alloc_kinds", kinds_said);
    }
    return code;
}

int MPI_Get_library_version(char *version, int *length)
{
    if (version_said == NULL) {
        return PMPI_Get_library_version(version, length);
    }
    *length = (int)strlen(version_said);
    memcpy(version, version_said, (size_t)*length + 1);
    return MPI_SUCCESS;
}
