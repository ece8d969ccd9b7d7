#include "lib/context/gpu_context.h"

#include <stdlib.h>
#include <string.h>

#include "fsdp/device.h"
#include "lib/base/log.h"
#include "lib/base/yielding.h"
#include "lib/context/context.h"
#include "lib/context/gpu_aware.h"
#include "lib/context/gpu_scratch.h"
#include "lib/device/gpu.h"
#include "lib/device/memory.h"
#include "lib/progress/agreement.h"
#include "lib/progress/gpu_request.h"

/* All events of a rank, one after the other. */
enum { EVENTS = 4 * FSDPI_GPU_STREAMS };

static fsdpi_gpu_event *event_of(fsdpi_gpu_peer *peer, int number)
{
    fsdpi_gpu_events *events = &peer->events[number / 4];

    return number % 4 < 2 ? &events->ready[number % 2] : &events->done[number % 2];
}

/* What a rank sends to its peers. */
typedef struct card {
    fsdpi_gpu_handle slots;
    fsdpi_gpu_handle events[EVENTS];
} card;

/* As much as in the mailbox, whatever the nodes: budgets know of other numbers of ranks without knowing their nodes. */
static size_t slots_bytes(const fsdp_context *ctx)
{
    return (size_t)ctx->config.staging_bytes;
}

/* For each chunk that may be under way between nodes, and some more. */
static size_t n_marks(int size)
{
    return fsdpi_rails_numbers(size);
}

static size_t marks_bytes(int size)
{
    return n_marks(size) * sizeof(fsdpi_gpu_event);
}

static size_t peers_bytes(int size)
{
    return (size_t)fsdpi_positions(size) * sizeof(fsdpi_gpu_peer);
}

size_t fsdpi_gpu_context_bytes(const fsdp_context *ctx)
{
    return ctx->gpu.device != NULL ? fsdpi_alloc_size(slots_bytes(ctx)) : 0;
}

size_t fsdpi_gpu_context_host_bytes(const fsdp_context *ctx, int size)
{
    return ctx->gpu.device != NULL ? fsdpi_alloc_size(peers_bytes(size)) + fsdpi_alloc_size(marks_bytes(size)) : 0;
}

static fsdpi_gpu_peer *own(const fsdp_context *ctx)
{
    return &ctx->gpu.peers[ctx->nodes.position];
}

const char *fsdpi_gpu_why_none(const fsdp_context *ctx)
{
    return ctx->config.device == FSDP_DEVICE_HOST ? "FSDP_DEVICE is 'host'"
           : ctx->n_gpus == 0                     ? "this rank has none"
                                                  : "another rank has none";
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A GPU, its streams and events, and memory for two letters. What has failed is closed with the context. */
static fsdp_status open_own(fsdp_context *ctx)
{
    fsdpi_gpu *gpu = &ctx->gpu;

    FSDP_TRY(fsdpi_gpu_device_open(ctx, &gpu->device));
    if (gpu->device == NULL) {
        return FSDP_OK;
    }
    fsdpi_gpu_scratch_open(ctx);
    const fsdpi_gpu_ops *ops = gpu->device->ops;
    gpu->peers               = fsdpi_alloc(ctx, FSDP_MEMORY_STAGING, peers_bytes(ctx->size));
    gpu->marks = gpu->peers != NULL ? fsdpi_alloc(ctx, FSDP_MEMORY_STAGING, marks_bytes(ctx->size)) : NULL;
    if (gpu->marks == NULL) {
        return FSDP_ERR_MEMORY;
    }
    for (int s = 0; s < FSDPI_GPU_STREAMS; s++) {
        FSDP_TRY(ops->stream_open(gpu->device, true, &gpu->streams[s]));
    }
    for (int e = 0; e < EVENTS; e++) {
        FSDP_TRY(ops->event_open(gpu->device, true, event_of(own(ctx), e)));
    }
    FSDP_TRY(ops->alloc(gpu->device, "staging between GPUs (FSDP_STAGING_BYTES)", slots_bytes(ctx),
                        (void **)&own(ctx)->slots));
    fsdpi_count_device_memory(ctx, FSDP_MEMORY_STAGING, own(ctx)->slots != NULL ? slots_bytes(ctx) : 0);
    return FSDP_OK;
}

static fsdp_status open_if_wanted(fsdp_context *ctx)
{
    if (ctx->config.device != FSDP_DEVICE_HOST && ctx->n_gpus > 0) {
        FSDP_TRY(open_own(ctx));
    }
    if (ctx->config.device == FSDP_DEVICE_GPU && ctx->gpu.device == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED,
                          "FSDP_DEVICE is 'gpu', but %s; use 'auto' or 'host', or make a GPU visible to this rank",
                          ctx->n_gpus > 0 ? "this build of the library has no GPU kernels" : fsdpi_gpu_missing());
    }
    return FSDP_OK;
}

static fsdp_status make_card(const fsdp_context *ctx, card *mine)
{
    fsdpi_gpu_device    *device = ctx->gpu.device;
    const fsdpi_gpu_ops *ops    = device->ops;

    FSDP_TRY(ops->memory_handle(device, own(ctx)->slots, &mine->slots));
    for (int e = 0; e < EVENTS; e++) {
        FSDP_TRY(ops->event_handle(device, *event_of(own(ctx), e), &mine->events[e]));
    }
    return FSDP_OK;
}

static fsdp_status open_peer(const fsdp_context *ctx, const card *theirs, fsdpi_gpu_peer *peer)
{
    fsdpi_gpu_device    *device = ctx->gpu.device;
    const fsdpi_gpu_ops *ops    = device->ops;

    FSDP_TRY(ops->open_memory(device, &theirs->slots, (void **)&peer->slots));
    for (int e = 0; e < EVENTS; e++) {
        FSDP_TRY(ops->open_event(device, &theirs->events[e], event_of(peer, e)));
    }
    return FSDP_OK;
}

static fsdp_status open_peers(const fsdp_context *ctx, const card *cards)
{
    for (int p = 0; p < ctx->nodes.size; p++) {
        if (p != ctx->nodes.position) {
            FSDP_TRY(open_peer(ctx, &cards[p], &ctx->gpu.peers[p]));
        }
    }
    return FSDP_OK;
}

static void close_peer(const fsdp_context *ctx, fsdpi_gpu_peer *peer)
{
    fsdpi_gpu_device *device = ctx->gpu.device;

    if (peer->slots != NULL) {
        (void)device->ops->close_memory(device, peer->slots);
    }
    for (int e = 0; e < EVENTS; e++) {
        (void)device->ops->event_close(device, *event_of(peer, e));
    }
    *peer = (fsdpi_gpu_peer){0};
}

static void close_peers(const fsdp_context *ctx)
{
    for (int p = 0; p < ctx->nodes.size; p++) {
        if (p != ctx->nodes.position) {
            close_peer(ctx, &ctx->gpu.peers[p]);
        }
    }
}

/* All ranks of the node tell each other where their memory is. `cards`: NULL where there was no memory for them. */
static fsdp_status exchange_cards(fsdp_context *ctx, card *cards)
{
    card        mine = {0};
    fsdp_status made = make_card(ctx, &mine);

    made =
        cards == NULL ? fsdpi_fail(ctx, FSDP_ERR_MEMORY, "fsdp_init: no memory for %d handles", ctx->nodes.size) : made;
    FSDP_TRY(fsdpi_agree_by_mpi(&ctx->queue.engine, made == FSDP_ERR_UNSUPPORTED ? FSDP_OK : made, "fsdp_init", 1));
    FSDPI_TRY_MPI(ctx,
                  fsdpi_mpi_allgather(&mine, cards, (int)sizeof mine, MPI_BYTE, ctx->node_comm, ctx->config.timeout_s));
    return FSDP_OK;
}

/* Whether all ranks of all nodes can reach their peers. What the runtime says against it is no error: there is another way. */
static fsdp_status share(fsdp_context *ctx)
{
    card             *cards     = calloc((size_t)ctx->nodes.size, sizeof *cards);
    const fsdp_status exchanged = exchange_cards(ctx, cards);
    const fsdp_status opened    = exchanged == FSDP_OK ? open_peers(ctx, cards) : exchanged;
    int               shares    = opened == FSDP_OK;

    free(cards);
    FSDP_TRY(exchanged);
    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allreduce(&shares, 1, MPI_INT, MPI_MIN, ctx->comm, ctx->config.timeout_s));
    ctx->gpu.shares = shares != 0;
    if (!ctx->gpu.shares) {
        close_peers(ctx);
        if (opened != FSDP_OK) {
            fsdpi_log(ctx, FSDP_LOG_WARN, "%s: collectives on GPU memory go through host memory",
                      fsdpi_error_recorded(ctx));
        }
    }
    return FSDP_OK;
}

/* All ranks use a GPU or none does. `status`: of opening it here. */
static fsdp_status agree_on_having_one(fsdp_context *ctx, fsdp_status status)
{
    const bool have     = ctx->gpu.device != NULL;
    int        words[3] = {status != FSDP_OK, have, !have}; /* on any rank */

    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allreduce(words, 3, MPI_INT, MPI_MAX, ctx->comm, ctx->config.timeout_s));
    if (words[0]) {
        return fsdpi_agree_by_mpi(&ctx->queue.engine, status, "fsdp_init", 0);
    }
    if (words[1] && words[2]) {
        if (!have) {
            fsdpi_log(ctx, FSDP_LOG_WARN, "this rank has no GPU, so that no rank of its context uses one");
        }
        fsdpi_gpu_context_close(ctx);
    }
    return FSDP_OK;
}

static fsdp_status pin_mailbox(fsdp_context *ctx)
{
    fsdpi_gpu_device *device = ctx->gpu.device;

    if (ctx->nodes.count == 1 && (ctx->gpu.shares || ctx->size == 1)) {
        return FSDP_OK;
    }
    return device->ops->pin(device, ctx->gpu.box->segment.base, ctx->gpu.box->segment.bytes, (void **)&ctx->gpu.view);
}

fsdp_status fsdpi_gpu_context_open(fsdp_context *ctx)
{
    FSDP_TRY(agree_on_having_one(ctx, open_if_wanted(ctx)));
    if (ctx->gpu.device == NULL) {
        return FSDP_OK;
    }
    ctx->queue.device_ops = &fsdpi_gpu_request_ops;
    FSDP_TRY(share(ctx));
    FSDP_TRY(fsdpi_gpu_ask_mpi(ctx));
    return fsdpi_agree_by_mpi(&ctx->queue.engine, pin_mailbox(ctx), "fsdp_init", 0);
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static void close_streams(fsdpi_gpu *gpu)
{
    for (int s = 0; s < FSDPI_GPU_STREAMS; s++) {
        (void)gpu->device->ops->stream_close(gpu->device, gpu->streams[s]);
        gpu->streams[s] = NULL;
    }
}

static void close_marks(fsdp_context *ctx)
{
    fsdpi_gpu *gpu = &ctx->gpu;

    for (size_t i = 0; gpu->marks != NULL && i < n_marks(ctx->size); i++) {
        (void)gpu->device->ops->event_close(gpu->device, gpu->marks[i]);
    }
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, gpu->marks, marks_bytes(ctx->size));
}

void fsdpi_gpu_context_leave(fsdp_context *ctx)
{
    fsdpi_gpu *gpu = &ctx->gpu;

    if (gpu->device == NULL || gpu->peers == NULL) {
        return;
    }
    close_streams(gpu);
    close_peers(ctx);
    if (gpu->shares) {
        (void)fsdpi_mpi_barrier(ctx->node_comm, ctx->config.timeout_s);
    }
}

void fsdpi_gpu_context_close(fsdp_context *ctx)
{
    fsdpi_gpu        *gpu    = &ctx->gpu;
    fsdpi_gpu_device *device = gpu->device;

    if (device == NULL) {
        return;
    }
    if (gpu->peers != NULL) {
        close_streams(gpu);
        fsdpi_uncount_device_memory(ctx, FSDP_MEMORY_STAGING, own(ctx)->slots != NULL ? slots_bytes(ctx) : 0);
        (void)device->ops->release(device, own(ctx)->slots);
        own(ctx)->slots = NULL;
        close_peer(ctx, own(ctx));
        close_marks(ctx);
        fsdpi_free(ctx, FSDP_MEMORY_STAGING, gpu->peers, peers_bytes(ctx->size));
    }
    fsdpi_gpu_scratch_close(ctx);
    if (gpu->view != NULL) {
        (void)device->ops->unpin(device, ctx->gpu.box->segment.base);
    }
    device->ops->close(device);
    *gpu = (fsdpi_gpu){.nodes = gpu->nodes, .box = gpu->box};
}

/* ---- what the program may ask -------------------------------------------------------------------------------------- */

int fsdp_device(const fsdp_context *ctx)
{
    return ctx != NULL && ctx->gpu.device != NULL ? ctx->gpu.device->number : -1;
}

fsdp_status fsdp_stream_set(fsdp_context *ctx, void *stream)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_stream_set: the context is NULL; pass one from fsdp_init");
    }
    if (ctx->gpu.device == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED, "fsdp_stream_set: this context uses no GPU (%s)",
                          fsdpi_gpu_why_none(ctx));
    }
    *fsdpi_gpu_callers_place(&ctx->gpu) = stream;
    return FSDP_OK;
}
