#include "lib/context/init.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/doing.h"
#include "lib/base/log.h"
#include "lib/base/mpi_library.h"
#include "lib/base/mpi_world.h"
#include "lib/base/plural.h"
#include "lib/base/settings.h"
#include "lib/base/yielding.h"
#include "lib/context/buffer_alloc.h"
#include "lib/context/context.h"
#include "lib/context/forks.h"
#include "lib/context/gpu_context.h"
#include "lib/context/mpi_end.h"
#include "lib/context/same_settings.h"
#include "lib/device/gpu.h"
#include "lib/device/memory.h"
#include "lib/node/hosts.h"
#include "lib/progress/agreement.h"
#include "lib/record/dump.h"
#include "lib/sync/pairs.h"
#include "lib/sync/staging.h"

static const char *const ISA_NAMES[] = {"auto", "scalar", "avx2", "avx512", "neon"};

static size_t operands_bytes(int size)
{
    return (size_t)fsdpi_operands(size) * sizeof(void *);
}

static size_t addresses_bytes(int size)
{
    return (size_t)fsdpi_positions(size) * sizeof(fsdpi_addresses);
}

size_t fsdpi_context_bookkeeping(int size, int recorded)
{
    return fsdpi_alloc_size(sizeof(fsdp_context)) + fsdpi_alloc_size(operands_bytes(size)) + fsdpi_queue_bookkeeping() +
           FSDPI_LANES * fsdpi_messages_bookkeeping() + fsdpi_mailboxes_bookkeeping(size, FSDPI_LANES) +
           fsdpi_alloc_size(addresses_bytes(size)) + fsdpi_peers_bookkeeping(size) + fsdpi_rails_bookkeeping(size) +
           fsdpi_recorder_bookkeeping(recorded);
}

/* Tells the parts of each other. */
static void connect_parts(fsdp_context *ctx)
{
    ctx->ctx          = ctx;
    ctx->gpu.nodes    = &ctx->nodes;
    ctx->gpu.box      = &ctx->lanes[FSDPI_LANE_LONG].box;
    ctx->queue.engine = (fsdpi_engine){.core      = &ctx->core,
                                       .nodes     = &ctx->nodes,
                                       .lanes     = ctx->lanes,
                                       .addresses = &ctx->addresses,
                                       .rails     = &ctx->rails,
                                       .trace     = &ctx->trace,
                                       .recorder  = &ctx->recorder,
                                       .gpu       = &ctx->gpu,
                                       .verdicts  = &ctx->verdicts};
    for (int i = 0; i < FSDPI_LANES; i++) {
        fsdpi_lane *lane = &ctx->lanes[i];
        lane->exchange   = (fsdpi_exchange){.nodes = &ctx->nodes, .box = &lane->box, .messages = &lane->messages};
    }
}

/* The context is the first of its own allocations. */
static fsdp_context *allocate_context(int size)
{
    static _Atomic uint64_t made;

    const size_t  bytes = fsdpi_alloc_size(sizeof(fsdp_context));
    fsdp_context *ctx   = fsdpi_device_host.alloc(bytes);

    if (ctx == NULL) {
        return NULL;
    }
    ctx->comm                                    = MPI_COMM_NULL;
    ctx->long_comm                               = MPI_COMM_NULL;
    ctx->node_comm                               = MPI_COMM_NULL;
    ctx->verdicts.type                           = MPI_DATATYPE_NULL;
    ctx->verdicts.op                             = MPI_OP_NULL;
    ctx->device                                  = &fsdpi_device_host;
    ctx->size                                    = size;
    ctx->number                                  = atomic_fetch_add(&made, 1) + 1;
    ctx->memory.current[FSDP_MEMORY_BOOKKEEPING] = bytes;
    ctx->memory.current_total                    = bytes;
    ctx->memory.peak_total                       = bytes;
    (void)pthread_mutex_init(&ctx->memory_lock, NULL);
    fsdpi_mapped_open(&ctx->mapped, (size_t)sysconf(_SC_PAGESIZE));
    connect_parts(ctx);
    return ctx;
}

/* Whoever has a communicator that MPI has not made at its start has MPI running. */
static bool may_be_of_a_session(MPI_Comm comm)
{
    return MPI_VERSION >= 4 && comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF && comm != MPI_COMM_NULL;
}

static fsdp_status check_communicator(MPI_Comm comm)
{
    int inter = 0;

    if (!fsdpi_mpi_has_world() && !may_be_of_a_session(comm)) {
        return fsdpi_fail(NULL, FSDP_ERR_STATE,
                          "fsdp_init: MPI is not running; call MPI_Init before fsdp_init, and "
                          "fsdp_finalize before MPI_Finalize");
    }
    if (comm == MPI_COMM_NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_init: the communicator is MPI_COMM_NULL; pass one that this process "
                          "is a member of, as MPI_COMM_WORLD");
    }
    if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_init: the communicator is an inter-communicator; pass an "
                          "intra-communicator, as MPI_Intercomm_merge makes of it");
    }
    return FSDP_OK;
}

/* Before there is a context. */
static fsdp_status fail_alone(MPI_Comm comm, int code, int timeout_s)
{
    int rank, size;

    if (code != MPI_ERR_PENDING) {
        return fsdpi_fail_mpi(NULL, code, "fsdp_init");
    }
    (void)MPI_Comm_rank(comm, &rank);
    (void)MPI_Comm_size(comm, &size);
    return fsdpi_fail(NULL, FSDP_ERR_TIMEOUT,
                      "rank %d waits in fsdp_init, which not all %d ranks of the communicator have called within "
                      "FSDP_TIMEOUT_S=%d seconds; look for a rank that has died, was stopped or is elsewhere",
                      rank, size, timeout_s);
}

/* Duplicates, and finds out whether every rank has its context, before anything else is sent. */
static fsdp_status duplicate(MPI_Comm comm, int timeout_s, fsdp_context *ctx)
{
    MPI_Comm copy = MPI_COMM_NULL;
    int      all  = ctx != NULL;

    int code = fsdpi_mpi_duplicate(comm, &copy, timeout_s);
    if (code != MPI_SUCCESS) {
        return fail_alone(comm, code, timeout_s);
    }
    (void)MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    code = fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, copy, timeout_s);
    if (code != MPI_SUCCESS) { /* it may be under way still, on a communicator that therefore stays */
        return fail_alone(comm, code, timeout_s);
    }
    if (!all) {
        (void)MPI_Comm_free(&copy);
        return fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_init: no memory for a context on at least one rank");
    }
    ctx->comm = copy;
    (void)MPI_Comm_rank(copy, &ctx->rank);
    (void)MPI_Comm_size(copy, &ctx->size);
    ctx->shown_rank = ctx->rank;
    return FSDP_OK;
}

static fsdp_status choose_kernels(fsdp_context *ctx)
{
    const char *name = ISA_NAMES[ctx->config.isa];

    ctx->kernels = fsdpi_kernels_find(name);
    if (ctx->kernels != NULL) {
        return FSDP_OK;
    }
    ctx->kernels = &fsdpi_kernels_scalar;
    return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                               "FSDP_ISA is '%s', which this processor or this build lacks; use 'auto'", name);
}

/* Many nodes, or many ranks on one, get what they need, however little is asked for. */
static void fit_staging(fsdp_context *ctx)
{
    const long long least = (long long)fsdpi_staging_least(&ctx->nodes);

    if (ctx->config.staging_bytes < least) {
        fsdpi_log(ctx, FSDP_LOG_INFO, "FSDP_STAGING_BYTES is %lld; %d node%s of up to %d ranks take%s %lld",
                  (long long)ctx->config.staging_bytes, ctx->nodes.count, fsdpi_s((uint64_t)ctx->nodes.count),
                  ctx->nodes.largest, ctx->nodes.count == 1 ? "s" : "", least);
        ctx->config.staging_bytes = least;
    }
}

static bool mpi_allows_threads(void)
{
    int provided = MPI_THREAD_SINGLE;

    (void)MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
}

static fsdp_status check_progress(fsdp_context *ctx)
{
    if (ctx->config.progress == FSDP_PROGRESS_THREAD && !mpi_allows_threads()) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "FSDP_PROGRESS is 'thread', but MPI was not started with MPI_THREAD_MULTIPLE; start it so, or "
            "use 'auto'");
    }
    return FSDP_OK;
}

/* Settings first: nothing is laid out before all ranks hold the same. */
static fsdp_status agree_on_settings(fsdp_context *ctx, fsdp_status status)
{
    if (status != FSDP_OK) {
        (void)fsdpi_record(ctx, status, "%s", fsdp_last_error(NULL));
    }
    return fsdpi_same_settings(ctx, status != FSDP_OK ? status : fsdpi_table_open(&ctx->table, &ctx->core));
}

static fsdp_status find_nodes(fsdp_context *ctx)
{
    const int divided = fsdpi_nodes_divisor(ctx->config.node_size);
    ctx->found        = malloc(fsdpi_nodes_bytes(ctx->size));

    FSDP_TRY(
        fsdpi_nodes_find(ctx, ctx->comm, ctx->config.shm_dir, divided, ctx->config.timeout_s, ctx->found, &ctx->nodes));
    if (ctx->nodes.apart > 0 && ctx->config.node_size != 1) {
        fsdpi_log(ctx, FSDP_LOG_WARN,
                  "%d rank%s of this host see%s another folder at FSDP_SHM_DIR (here %s) than rank %d, as in "
                  "containers; they "
                  "count as other nodes; give all of them one folder, or set FSDP_NODE_SIZE=1",
                  ctx->nodes.apart, fsdpi_s((uint64_t)ctx->nodes.apart), ctx->nodes.apart == 1 ? "s" : "",
                  ctx->config.shm_dir, ctx->rank);
    }
    FSDP_TRY(fsdpi_hosts_find(&ctx->core, &ctx->nodes));
    if (ctx->nodes.count == 1) {
        FSDPI_TRY_MPI(ctx, fsdpi_mpi_duplicate(ctx->comm, &ctx->node_comm, ctx->config.timeout_s));
    } else {
        FSDPI_TRY_MPI(ctx, MPI_Comm_split(ctx->comm, ctx->nodes.mine, ctx->rank, &ctx->node_comm));
    }
    FSDPI_TRY_MPI(ctx, MPI_Comm_set_errhandler(ctx->node_comm, MPI_ERRORS_RETURN));
    return FSDP_OK;
}

/* Messages of both lanes meet in no order: MPI tells them apart by their communicators. */
static fsdp_status open_messages(fsdp_context *ctx)
{
    FSDP_TRY(fsdpi_messages_open(&ctx->lanes[FSDPI_LANE_SHORT].messages, &ctx->core, ctx->comm));
    return fsdpi_messages_open(&ctx->lanes[FSDPI_LANE_LONG].messages, &ctx->core, ctx->long_comm);
}

static fsdp_status open_mailboxes(fsdp_context *ctx)
{
    const size_t         bytes     = (size_t)ctx->config.staging_bytes;
    const size_t         staging[] = {[FSDPI_LANE_SHORT] = fsdpi_staging_short(bytes), [FSDPI_LANE_LONG] = bytes};
    fsdpi_mailbox *const boxes[]   = {&ctx->lanes[FSDPI_LANE_SHORT].box, &ctx->lanes[FSDPI_LANE_LONG].box};

    return fsdpi_mailboxes_open(boxes, staging, FSDPI_LANES, &ctx->core, &ctx->nodes);
}

static fsdp_status open_parts(fsdp_context *ctx)
{
    ctx->operands              = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, operands_bytes(ctx->size));
    ctx->addresses             = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, addresses_bytes(ctx->size));
    const fsdp_status recorder = fsdpi_recorder_open(&ctx->recorder, &ctx->core, &ctx->nodes); /* collective */
    fsdp_status       status =
        ctx->operands != NULL && ctx->addresses != NULL ? fsdpi_queue_open(&ctx->queue) : FSDP_ERR_MEMORY;
    status                  = status == FSDP_OK ? open_messages(ctx) : status;
    status                  = status == FSDP_OK ? fsdpi_trace_open(&ctx->trace, &ctx->core) : status;
    status                  = status == FSDP_OK ? recorder : status;
    status                  = status == FSDP_OK ? fsdpi_rails_open(&ctx->rails, &ctx->core) : status;
    status                  = status == FSDP_OK ? fsdpi_peers_open(&ctx->peers, &ctx->core, &ctx->nodes) : status;
    const fsdp_status boxes = open_mailboxes(ctx); /* collective: whatever has failed before */
    return status == FSDP_OK ? boxes : status;
}

/* All ranks of the node have its mailbox: the memory in there is what to use. */
static void share_nodes(fsdp_context *ctx)
{
    fsdpi_nodes_move(&ctx->nodes, ctx->size, ctx->lanes[0].box.map);
    free(ctx->found);
    ctx->found = NULL;
}

/* What peers and MPI have to do with: where MPI has ended, it stays. */
static void leave_peers(fsdp_context *ctx)
{
    fsdpi_mpi_end_forget(ctx);
    fsdpi_gpu_context_leave(ctx);
    fsdpi_buffers_close(ctx);
    fsdpi_gpu_context_close(ctx);
    fsdpi_verdicts_close(&ctx->verdicts);
    for (int i = 0; i < FSDPI_LANES; i++) {
        fsdpi_pairs_close(&ctx->lanes[i].exchange);
    }
    if (ctx->node_comm != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&ctx->node_comm);
    }
    if (ctx->long_comm != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&ctx->long_comm);
    }
    if (ctx->comm != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&ctx->comm);
    }
}

static void release_lanes(fsdp_context *ctx)
{
    fsdpi_mailbox *const boxes[] = {&ctx->lanes[FSDPI_LANE_SHORT].box, &ctx->lanes[FSDPI_LANE_LONG].box};

    for (int i = 0; i < FSDPI_LANES; i++) {
        fsdpi_messages_close(&ctx->lanes[i].messages);
    }
    fsdpi_mailboxes_close(boxes, FSDPI_LANES);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, ctx->addresses, addresses_bytes(ctx->size));
}

static void release_context(fsdp_context *ctx)
{
    fsdpi_queue_close(&ctx->queue);
    fsdpi_trace_close(&ctx->trace);
    fsdpi_recorder_close(&ctx->recorder);
    if (ctx->broken == FSDP_OK) {
        leave_peers(ctx);
    } else {
        fsdpi_buffers_close(ctx);
    }
    fsdpi_rails_close(&ctx->rails);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, ctx->operands, operands_bytes(ctx->size));
    fsdpi_peers_close(&ctx->peers);
    release_lanes(ctx);
    free(ctx->found);
    (void)pthread_mutex_destroy(&ctx->memory_lock);
    fsdpi_device_host.release(ctx);
}

static void settle_lanes(fsdp_context *ctx)
{
    const int  cores    = ctx->binding.share < 1.0 ? 0 : ctx->machine.cores;
    const bool in_pairs = ctx->nodes.count > 1 && fsdpi_costs_in_pairs(&ctx->table.costs, &ctx->table.world);

    for (int i = 0; i < FSDPI_LANES; i++) {
        fsdpi_lane *lane = &ctx->lanes[i];

        fsdpi_mailbox_set_cores(&lane->box, cores);
        fsdpi_pairs_settle(&lane->exchange, &ctx->link);
        lane->exchange.in_pairs = in_pairs;
        lane->messages.cut      = fsdpi_link_cut(&ctx->link);
    }
}

/* Everything after the duplicate exists. A failure on one rank is that of all. */
static fsdp_status set_up(fsdp_context *ctx, fsdp_status settings)
{
    FSDP_TRY(fsdpi_verdicts_open(&ctx->verdicts, ctx));
    FSDP_TRY(agree_on_settings(ctx, settings));
    FSDPI_TRY_MPI(ctx, fsdpi_mpi_duplicate(ctx->comm, &ctx->long_comm, ctx->config.timeout_s));
    FSDPI_TRY_MPI(ctx, MPI_Comm_set_errhandler(ctx->long_comm, MPI_ERRORS_RETURN));
    FSDP_TRY(find_nodes(ctx));
    fsdp_status status = fsdpi_bind(&ctx->core, &ctx->binding); /* before memory is touched, and before HIP is used */
    if (status == FSDP_ERR_MPI || status == FSDP_ERR_TIMEOUT) {
        return status;
    }
    ctx->queue.share = ctx->binding.share;
    fit_staging(ctx);
    ctx->n_gpus               = fsdpi_gpu_count();
    const fsdp_status threads = check_progress(ctx), kernels = choose_kernels(ctx), parts = open_parts(ctx);
    status = status != FSDP_OK ? status : threads != FSDP_OK ? threads : kernels != FSDP_OK ? kernels : parts;
    FSDP_TRY(fsdpi_agree_by_mpi(&ctx->queue.engine, status, "fsdp_init", 0));
    share_nodes(ctx);
    for (int i = 0; i < FSDPI_LANES; i++) {
        fsdpi_mailbox_grow(&ctx->lanes[i].box, &ctx->lanes[0].box);
    }
    FSDP_TRY(fsdpi_peers_probe(&ctx->peers));
    FSDPI_TRY_MPI(ctx, fsdpi_machine_look(ctx->node_comm, ctx->config.timeout_s, &ctx->machine));
    FSDP_TRY(fsdpi_link_measure(&ctx->nodes, &ctx->lanes[FSDPI_LANE_LONG].box, &ctx->link));
    fsdpi_table_settle(&ctx->table, &ctx->nodes, &ctx->link);
    settle_lanes(ctx);
    ctx->queue.nap          = fsdpi_link_nap(&ctx->link);
    ctx->queue.link_is_slow = fsdpi_link_is_slow(&ctx->link);
    FSDP_TRY(fsdpi_gpu_context_open(ctx));
    if (ctx->size > 1 && ctx->config.progress != FSDP_PROGRESS_INLINE && mpi_allows_threads()) {
        status = fsdpi_queue_start_thread(&ctx->queue, &ctx->binding);
    } else {
        fsdpi_queue_go_without_thread(&ctx->queue);
    }
    status = status == FSDP_OK ? fsdpi_mpi_end_expect(ctx) : status;
    return fsdpi_agree(ctx, "fsdp_init", NULL, 0, status, true);
}

/* As with a context that is broken, what messages may still arrive for stays, and so does their communicator. */
static void release_failed(fsdp_context *ctx, fsdp_status status)
{
    fsdpi_queue_drain(&ctx->queue);
    fsdpi_bind_undo(&ctx->binding);
    if (ctx->broken == FSDP_OK && status != FSDP_ERR_MPI && status != FSDP_ERR_TIMEOUT) {
        release_context(ctx);
    } else {
        fsdpi_mpi_end_forget(ctx);
    }
}

/* With settings that are resolved, and what was wrong with them. */
static fsdp_status open_context(MPI_Comm comm, const fsdp_config *config, fsdp_status settings, fsdp_context **ctx)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_init: the place for the context is NULL");
    }
    *ctx = NULL;
    FSDP_TRY(fsdpi_mpi_library_check()); /* before the communicator is looked at */
    FSDP_TRY(check_communicator(comm));

    int size;
    FSDPI_TRY_MPI(NULL, MPI_Comm_size(comm, &size));
    fsdp_context     *made   = allocate_context(size);
    const fsdp_status copied = duplicate(comm, config->timeout_s, made);
    if (copied != FSDP_OK) {
        if (made != NULL) {
            release_context(made);
        }
        return copied;
    }
    made->config             = *config;
    const char       *before = fsdpi_doing("fsdp_init");
    const fsdp_status status = set_up(made, settings);
    (void)fsdpi_doing(before);
    if (status != FSDP_OK) {
        (void)fsdpi_record(NULL, status, "%s", made->error);
        release_failed(made, status);
        return status;
    }
    fsdpi_forks_watch(made);
    if (made->rank == 0) {
        fsdpi_settings_warn_unknown(made);
    }
    fsdpi_log(made, FSDP_LOG_INFO,
              "context opened: %d rank%s on %d node%s, %s kernels, %d GPU%s, %s; operations advance %s; peers' "
              "memory is %s",
              made->size, fsdpi_s((uint64_t)made->size), made->nodes.count, fsdpi_s((uint64_t)made->nodes.count),
              made->kernels->name, made->n_gpus, fsdpi_s((uint64_t)made->n_gpus),
              made->gpu.device == NULL ? "none used"
              : made->gpu.shares       ? "which reach each other"
                                       : "each for itself",
              made->queue.has_thread ? "on a thread" : "inside calls only",
              made->peers.readable ? "read directly" : "read through shared memory");
    *ctx = made;
    return FSDP_OK;
}

fsdp_status fsdp_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx)
{
    fsdp_config        resolved;
    const fsdp_status  settings = fsdpi_settings_resolve(config, &resolved);
    const fsdp_config *before   = fsdpi_log_open(&resolved);
    const fsdp_status  status   = open_context(comm, &resolved, settings, ctx);

    (void)fsdpi_log_open(before);
    return status;
}

static size_t release_owned(fsdp_context *ctx)
{
    size_t released = 0;

    while (ctx->owned != NULL) {
        fsdpi_owned *entry = ctx->owned;

        fsdpi_log(ctx, FSDP_LOG_WARN, "fsdp_finalize: a %s is still open; release it first", entry->kind);
        ctx->owned = entry->next;
        entry->release(entry->object);
        released++;
    }
    return released;
}

static fsdp_status finalize(fsdp_context *ctx)
{
    if (ctx->copy_of != 0) {
        (void)fsdpi_fail_copy(ctx);
        return fsdpi_record(NULL, FSDP_ERR_STATE, "%s", fsdp_last_error(ctx));
    }
    fsdpi_forks_forget(ctx);
    fsdpi_queue_drain(&ctx->queue);
    if (ctx->config.bind_keep == FSDP_BIND_GIVE_BACK) {
        fsdpi_bind_give_back(&ctx->binding);
    }
    const size_t objects  = release_owned(ctx);
    const size_t requests = fsdpi_queue_never_ended(&ctx->queue); /* but those of a model, which it has ended */
    if (ctx->broken == FSDP_ERR_STATE) {
        release_context(ctx);
        return fsdpi_fail(NULL, FSDP_ERR_STATE,
                          "fsdp_finalize: MPI_Finalize has been called before; finalize every context first");
    }
    if (requests > 0) {
        fsdpi_log(ctx, FSDP_LOG_WARN, "fsdp_finalize: %zu request%s never waited for; wait for each one", requests,
                  requests == 1 ? " was" : "s were");
    }
    if (ctx->broken !=
        FSDP_OK) { /* messages may still arrive: what they are written to, and their communicator, stay */
        fsdpi_mpi_end_forget(ctx);
        fsdpi_dump_fail(ctx->error);
        fsdpi_recorder_close(&ctx->recorder);
        (void)fsdpi_record(NULL, ctx->broken, "%s", ctx->error);
        return ctx->broken;
    }
    release_context(ctx);
    return objects + requests > 0 ? FSDP_ERR_LEAK : FSDP_OK;
}

fsdp_status fsdp_finalize(fsdp_context *ctx)
{
    if (ctx == NULL) {
        return FSDP_OK;
    }
    const fsdp_config  config = ctx->config;
    const fsdp_config *before = fsdpi_log_open(&config);
    const fsdp_status  status = finalize(ctx);

    (void)fsdpi_log_open(before);
    return status;
}
