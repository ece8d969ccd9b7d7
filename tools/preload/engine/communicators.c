#include "tools/preload/engine/communicators.h"

#include <pthread.h>
#include <stdlib.h>

#include "fsdp/algorithms.h"
#include "tools/preload/engine/settings.h"
#include "tools/preload/engine/text.h"

enum { PLACES = 64, CALL_BYTES = 256 }; /* a call counts as so much beside what it moves */

static _Atomic(fsdpi_communicator *) RECENT[PLACES];
static pthread_mutex_t               LOCK = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static fsdpi_communicator           *unused; /* never freed: whoever reads RECENT may still look */
static int                           n_contexts;
static int                           key    = MPI_KEYVAL_INVALID;
static atomic_bool                   closed = false;

static size_t place_of(MPI_Comm comm)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)comm * 0x9E3779B97F4A7C15u;

    return (size_t)(mixed >> 58) % PLACES;
}

static void give_up(fsdpi_communicator *of)
{
    (void)pthread_mutex_lock(&LOCK);
    of->next = unused;
    unused   = of;
    (void)pthread_mutex_unlock(&LOCK);
}

static void count_contexts(int more)
{
    (void)pthread_mutex_lock(&LOCK);
    n_contexts += more;
    (void)pthread_mutex_unlock(&LOCK);
}

static void close_context(fsdpi_communicator *of)
{
    (void)fsdp_finalize(of->ctx);
    free(of->lists);
    of->ctx   = NULL;
    of->lists = NULL;
    count_contexts(-1);
}

/* MPI frees the communicator. */
static int on_release(MPI_Comm comm, int of_key, void *attribute, void *nothing)
{
    fsdpi_communicator *of   = attribute;
    fsdpi_communicator *seen = of;

    (void)comm;
    (void)of_key;
    (void)nothing;
    if (atomic_load(&closed)) {
        return MPI_SUCCESS;
    }
    (void)atomic_compare_exchange_strong(&RECENT[place_of(comm)], &seen, NULL);
    atomic_store(&of->handle, MPI_COMM_NULL);
    if (of->ctx != NULL) {
        close_context(of);
    }
    give_up(of);
    return MPI_SUCCESS;
}

int fsdpi_communicators_open(void)
{
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_release, &key, NULL);
}

void fsdpi_communicators_close(void)
{
    atomic_store(&closed, true);
}

static fsdpi_communicator *allocate(void)
{
    (void)pthread_mutex_lock(&LOCK);
    fsdpi_communicator *of = unused;
    if (of != NULL) {
        unused = of->next;
    }
    (void)pthread_mutex_unlock(&LOCK);
    return of != NULL ? of : calloc(1, sizeof *of);
}

static fsdpi_communicator *add(MPI_Comm comm)
{
    fsdpi_communicator *of = allocate();
    int                 inter, size, rank;

    if (of == NULL) {
        return NULL;
    }
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || PMPI_Comm_size(comm, &size) != MPI_SUCCESS ||
        PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS || PMPI_Comm_set_attr(comm, key, of) != MPI_SUCCESS) {
        give_up(of);
        return NULL;
    }
    of->size  = size;
    of->rank  = rank;
    of->fate  = inter ? FSDPI_INTER : size == 1 ? FSDPI_ALONE : FSDPI_TOO_NEW;
    of->moved = 0;
    for (int i = 0; i < FSDPI_N_COVERED; i++) {
        of->pause[i] = of->pauses[i] = of->turns[i] = 0;
    }
    atomic_store(&of->handle, comm);
    return of;
}

fsdpi_communicator *fsdpi_communicator_of(MPI_Comm comm)
{
    _Atomic(fsdpi_communicator *) *recent = &RECENT[place_of(comm)];
    fsdpi_communicator            *of     = atomic_load_explicit(recent, memory_order_acquire);
    void                          *known;
    int                            found;

    if (of != NULL && atomic_load_explicit(&of->handle, memory_order_acquire) == comm) {
        return of;
    }
    if (comm == MPI_COMM_NULL || PMPI_Comm_get_attr(comm, key, &known, &found) != MPI_SUCCESS) {
        return NULL;
    }
    of = found ? known : add(comm);
    atomic_store(recent, of);
    return of;
}

/* Whether all ranks say so. */
static bool all_say(MPI_Comm comm, bool mine)
{
    int say = mine;

    return PMPI_Allreduce(MPI_IN_PLACE, &say, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && say != 0;
}

/* No thread, no binding, and silence, unless the environment asks for more; and no patience that ends sooner than MPI's. */
static void configure(fsdp_config *config)
{
    fsdp_config_init(config);
    config->bind     = FSDP_BIND_NONE;
    config->progress = FSDP_PROGRESS_INLINE;
    config->device   = FSDP_DEVICE_HOST;
    if (getenv("FSDP_LOG") == NULL) {
        config->log_level = FSDP_LOG_OFF;
    }
    if (getenv("FSDP_TIMEOUT_S") == NULL) {
        config->timeout_s = 0;
    }
    if (getenv("FSDP_VERIFY") == NULL) {
        config->verify = FSDP_VERIFY_OFF;
    }
}

/* The copy that the context is made of has none of the attributes, whose owners would see a copy made otherwise. */
static fsdp_status open_on_copy(fsdpi_communicator *of, MPI_Comm comm)
{
    MPI_Comm    copy;
    fsdp_config config;

    if (PMPI_Comm_split(comm, 0, of->rank, &copy) != MPI_SUCCESS) {
        return FSDP_ERR_MPI;
    }
    configure(&config);
    const fsdp_status status = fsdp_init(copy, &config, &of->ctx);
    if (status != FSDP_OK && of->rank == 0) {
        fsdpi_preload_say("a communicator of %d ranks stays with MPI: %s", of->size, fsdp_last_error(NULL));
    }
    (void)PMPI_Comm_free(&copy);
    return status;
}

/* The same on all ranks, as what was measured of the network is. */
static fsdpi_span span_of(const fsdp_context *ctx)
{
    static const double SLOW = 1.6e9; /* BYTES per second */
    fsdp_cluster        cluster;

    if (fsdp_cluster_of(ctx, &cluster) != FSDP_OK || cluster.nodes == 1) {
        return FSDPI_ONE_NODE;
    }
    return cluster.bytes_per_s > 0 && cluster.bytes_per_s <= SLOW ? FSDPI_SLOW_NETWORK : FSDPI_FAST_NETWORK;
}

static fsdpi_fate open_context(fsdpi_communicator *of)
{
    MPI_Comm comm = atomic_load(&of->handle);

    (void)pthread_mutex_lock(&LOCK);
    const bool room = n_contexts < fsdpi_preload.contexts;
    n_contexts += room;
    (void)pthread_mutex_unlock(&LOCK);
    if (!all_say(comm, room)) {
        count_contexts(-room);
        return FSDPI_TOO_MANY;
    }
    of->lists = calloc(4 * (size_t)of->size, sizeof *of->lists);
    if (!all_say(comm, of->lists != NULL)) {
        free(of->lists);
        of->lists = NULL;
        count_contexts(-1);
        return FSDPI_NO_CONTEXT;
    }
    if (!all_say(comm, open_on_copy(of, comm) == FSDP_OK)) {
        close_context(of); /* of those that have one */
        return FSDPI_NO_CONTEXT;
    }
    of->span = span_of(of->ctx);
    return FSDPI_TAKEN;
}

void fsdpi_communicator_moves(fsdpi_communicator *of, uint64_t bytes)
{
    of->moved = of->moved + CALL_BYTES < UINT64_MAX - bytes ? of->moved + CALL_BYTES + bytes : UINT64_MAX;
    if (of->fate == FSDPI_TOO_NEW && of->moved >= fsdpi_preload.after) {
        of->fate = open_context(of);
    }
}
