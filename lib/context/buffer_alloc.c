#include "lib/context/buffer_alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/doing.h"
#include "lib/base/error.h"
#include "lib/base/yielding.h"
#include "lib/context/context.h"
#include "lib/context/gpu_context.h"
#include "lib/device/memory.h"

/* Freed buffers whose addresses are still kept: enough for a program to run into its mistake, and only addresses. */
enum { FREED_KEPT = 64 };

enum { N_KINDS = FSDP_BUFFER_DEVICE + 1 };

static const char *const KINDS[N_KINDS] = {"one per rank", "one per node", "one per GPU"};

/* Only memory of GPUs is seen elsewhere by each peer, and so by lists. */
static size_t record_bytes(fsdp_buffer_kind kind, int size)
{
    const size_t parts = kind == FSDP_BUFFER_DEVICE ? (size_t)fsdpi_positions(size) : 0;

    return sizeof(fsdpi_buffer) + parts * sizeof(fsdpi_buffer_part);
}

size_t fsdpi_buffer_bookkeeping(fsdp_buffer_kind kind, int size)
{
    return fsdpi_alloc_size(record_bytes(kind, size));
}

/* ---- allocation -------------------------------------------------------------------------------------------------- */

/* Whole pages; PTRDIFF_MAX where they are too many. */
static size_t pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return bytes > PTRDIFF_MAX - page ? PTRDIFF_MAX : (bytes + page - 1) / page * page;
}

static size_t sum(size_t a, size_t b)
{
    return a > PTRDIFF_MAX - b ? PTRDIFF_MAX : a + b;
}

/* A segment of the node: where it ends, and this rank's part of it, which it touches first. */
typedef struct segment_plan {
    size_t places; /* BYTES of these, at the beginning */
    size_t end;    /* PTRDIFF_MAX where it does not fit; 0: there is none */
    size_t begin, own, n_own;
} segment_plan;

/* Its own buffer; the leader's is the first, and the places before it are the leader's too. */
static segment_plan plan_of_ranks(const fsdp_context *ctx, const uint64_t *bytes)
{
    const size_t n = (size_t)ctx->nodes.size, position = (size_t)ctx->nodes.position;
    segment_plan plan = {.places = n > 1 ? pages(n * sizeof(fsdpi_buffer_place)) : 0};

    plan.end = plan.places;
    for (size_t p = 0; p < n; p++) {
        plan.begin = p == position ? plan.end : plan.begin;
        plan.end   = sum(plan.end, pages(bytes[p]));
    }
    plan.end   = plan.end == plan.places ? 0 : plan.end;
    plan.own   = position == 0 ? 0 : plan.begin;
    plan.n_own = bytes[position] + (position == 0 ? plan.places : 0);
    return plan;
}

/* Its share of what is one for the node. */
static segment_plan plan_of_node(const fsdp_context *ctx, size_t bytes)
{
    const size_t n = (size_t)ctx->nodes.size, p = (size_t)ctx->nodes.position;
    const size_t own = bytes / n * p;

    return (segment_plan){.end = pages(bytes), .own = own, .n_own = p + 1 < n ? bytes / n : bytes - own};
}

/* By the leader alone; peers see it behind the next agreement. */
static void write_places(const fsdpi_buffer *buffer, const segment_plan *plan, const uint64_t *bytes, size_t n)
{
    fsdpi_buffer_place *places = (fsdpi_buffer_place *)(void *)buffer->segment.base;
    size_t              begin  = plan->places;

    for (size_t p = 0; p < n; p++) {
        places[p] = (fsdpi_buffer_place){begin, bytes[p]};
        begin += pages(bytes[p]);
    }
}

/* `bytes`: of every rank on the node. */
static fsdp_status claim_segment(fsdp_context *ctx, fsdpi_buffer *buffer, const uint64_t *bytes)
{
    const segment_plan plan =
        buffer->kind == FSDP_BUFFER_PER_NODE ? plan_of_node(ctx, buffer->bytes) : plan_of_ranks(ctx, bytes);

    if (plan.end >= PTRDIFF_MAX) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_MEMORY, "fsdp_buffer_alloc: %zu bytes here, and too many on this node in all", buffer->bytes);
    }
    if (plan.end == 0) {
        return FSDP_OK;
    }
    const fsdpi_segment_need need = {.bytes    = plan.end,
                                     .own      = plan.own,
                                     .n_own    = plan.n_own,
                                     .remedy   = "ask for less in symmetric buffers",
                                     .mappable = buffer->mappable};
    FSDP_TRY(fsdpi_segment_open(&ctx->core, &ctx->nodes, &need, &buffer->segment));
    buffer->base = buffer->segment.base + plan.begin;
    if (plan.places > 0) {
        buffer->places = (const fsdpi_buffer_place *)(const void *)buffer->segment.base;
    }
    if (plan.places > 0 && ctx->nodes.position == 0) {
        write_places(buffer, &plan, bytes, (size_t)ctx->nodes.size);
    }
    return FSDP_OK;
}

/* ---- on GPUs ----------------------------------------------------------------------------------------------------- */

/* Memory of this rank's GPU, zeroed, and, where peers can reach it, what they need for that. */
static fsdp_status claim_own_device(fsdp_context *ctx, fsdpi_buffer *buffer, fsdpi_gpu_handle *handle)
{
    fsdpi_gpu_device *device = ctx->gpu.device;
    void             *memory;

    FSDP_TRY(device->ops->alloc(device, "fsdp_buffer_alloc", buffer->bytes, &memory));
    buffer->base = memory;
    FSDP_TRY(device->ops->clear(device, memory, buffer->bytes, ctx->gpu.streams[FSDPI_GPU_GATHERS]));
    FSDP_TRY(device->ops->stream_finish(device, ctx->gpu.streams[FSDPI_GPU_GATHERS]));
    return ctx->gpu.shares && memory != NULL ? device->ops->memory_handle(device, memory, handle) : FSDP_OK;
}

static fsdp_status open_parts(fsdp_context *ctx, fsdpi_buffer *buffer, const fsdpi_gpu_handle *handles)
{
    fsdpi_gpu_device *device = ctx->gpu.device;

    for (int p = 0; p < ctx->nodes.size; p++) {
        fsdpi_buffer_part *part = &buffer->parts[p];
        if (p == ctx->nodes.position) {
            part->base = buffer->base;
        } else if (ctx->gpu.shares && part->bytes > 0) {
            FSDP_TRY(device->ops->open_memory(device, &handles[p], (void **)&part->base));
        }
    }
    return FSDP_OK;
}

static fsdp_status claim_device(fsdp_context *ctx, fsdpi_buffer *buffer, const uint64_t *bytes_of)
{
    fsdpi_gpu_handle  mine    = {{0}};
    const size_t      bytes   = (size_t)ctx->nodes.size * sizeof mine;
    fsdpi_gpu_handle *handles = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, bytes);
    fsdp_status       status  = handles != NULL ? claim_own_device(ctx, buffer, &mine) : FSDP_ERR_MEMORY;

    for (int p = 0; p < ctx->nodes.size; p++) {
        buffer->parts[p].bytes = bytes_of[p];
    }
    status = fsdpi_agree(ctx, "fsdp_buffer_alloc", "device memory", 0, status, true);
    if (status == FSDP_OK && handles != NULL) {
        const int code =
            fsdpi_mpi_allgather(&mine, handles, (int)sizeof mine, MPI_BYTE, ctx->node_comm, ctx->config.timeout_s);
        status =
            code == MPI_SUCCESS ? open_parts(ctx, buffer, handles) : fsdpi_fail_mpi(ctx, code, "fsdp_buffer_alloc");
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, handles, bytes);
    return status;
}

/*
 * Peers' memory, which they may release when all have done so. In a broken context nothing is released, and streams may wait
 * for a peer that is gone.
 */
static void close_parts(fsdpi_buffer *buffer)
{
    fsdp_context *ctx    = buffer->ctx;
    const bool    closes = buffer->kind == FSDP_BUFFER_DEVICE && ctx->broken == FSDP_OK;

    for (int p = 0; p < ctx->nodes.size && closes; p++) {
        if (p != ctx->nodes.position && buffer->parts[p].base != NULL) {
            (void)ctx->gpu.device->ops->close_memory(ctx->gpu.device, buffer->parts[p].base);
        }
        buffer->parts[p].base = NULL;
    }
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* `bytes` has room for those of every rank on the node. */
static fsdp_status claim_memory(fsdp_context *ctx, fsdpi_buffer *buffer, uint64_t *bytes)
{
    const uint64_t mine = buffer->bytes;

    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allgather(&mine, bytes, 1, MPI_UINT64_T, ctx->node_comm, ctx->config.timeout_s));
    return buffer->kind == FSDP_BUFFER_DEVICE ? claim_device(ctx, buffer, bytes) : claim_segment(ctx, buffer, bytes);
}

static void release(fsdp_context *ctx, fsdpi_buffer *buffer)
{
    if (fsdpi_is_at_rest(&ctx->core)) {
        fsdpi_segment_close(&buffer->segment);
    }
    if (buffer->kind == FSDP_BUFFER_DEVICE && ctx->broken == FSDP_OK) { /* else a peer may still write to it */
        (void)ctx->gpu.device->ops->release(ctx->gpu.device, buffer->base);
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, buffer, record_bytes(buffer->kind, ctx->size));
}

static size_t counted_bytes(const fsdpi_buffer *buffer)
{
    return buffer->kind == FSDP_BUFFER_PER_NODE ? buffer->bytes / (size_t)buffer->ctx->nodes.size : buffer->bytes;
}

static void count_buffer(fsdpi_buffer *buffer)
{
    (buffer->kind == FSDP_BUFFER_DEVICE ? fsdpi_count_device_memory : fsdpi_count_memory)(buffer->ctx, buffer->purpose,
                                                                                          counted_bytes(buffer));
}

static void uncount_buffer(fsdpi_buffer *buffer)
{
    (buffer->kind == FSDP_BUFFER_DEVICE ? fsdpi_uncount_device_memory
                                        : fsdpi_uncount_memory)(buffer->ctx, buffer->purpose, counted_bytes(buffer));
}

static void unlink_live(fsdpi_buffer *buffer)
{
    fsdpi_buffer_leave(&buffer->ctx->buffers, buffer);
    fsdpi_disown(buffer->ctx, &buffer->owned);
    uncount_buffer(buffer);
}

/*
 * By fsdp_finalize(), for a buffer that was not freed; or for one of a model. Device memory stays until all peers have
 * closed it, which they have behind fsdpi_gpu_context_leave().
 */
static void release_leaked(void *object)
{
    fsdpi_buffer *buffer = object;

    unlink_live(buffer);
    if (buffer->kind == FSDP_BUFFER_DEVICE) {
        close_parts(buffer);
        buffer->next              = buffer->ctx->buffers.left;
        buffer->ctx->buffers.left = buffer;
    } else {
        release(buffer->ctx, buffer);
    }
}

void fsdpi_buffer_drop(fsdp_context *ctx, const void *memory)
{
    fsdpi_buffer *buffer = fsdpi_buffer_beginning_at(&ctx->buffers, memory);

    if (buffer != NULL) {
        release_leaked(buffer);
    }
}

/* What could not be had on all ranks. */
static void give_up(fsdp_context *ctx, fsdpi_buffer *buffer)
{
    if (buffer->ctx != NULL && buffer->kind == FSDP_BUFFER_DEVICE) {
        close_parts(buffer);
        (void)fsdpi_agree(ctx, "fsdp_buffer_alloc", "closed", 0, FSDP_OK, true);
    }
    release(ctx, buffer);
}

/* What this rank asks for. */
typedef struct wish {
    fsdp_buffer_kind kind;
    fsdp_memory_kind purpose;
    size_t           bytes;
    bool             mappable;
} wish;

/* `bytes_of`: room for those of every rank on the node. */
static fsdp_status make(fsdp_context *ctx, const wish *wanted, uint64_t *bytes_of, fsdpi_buffer **made)
{
    fsdpi_buffer *buffer = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, record_bytes(wanted->kind, ctx->size));
    fsdp_status   status = buffer != NULL ? FSDP_OK : FSDP_ERR_MEMORY;

    if (buffer != NULL && bytes_of == NULL) {
        status = fsdpi_fail(ctx, FSDP_ERR_MEMORY, "fsdp_buffer_alloc: no memory for %d sizes", ctx->nodes.size);
    }
    status = fsdpi_agree(ctx, "fsdp_buffer_alloc", "record", 0, status, true);
    if (buffer != NULL) {
        buffer->kind = wanted->kind;
    }
    if (status == FSDP_OK && buffer != NULL && bytes_of != NULL) {
        buffer->ctx      = ctx;
        buffer->bytes    = wanted->bytes;
        buffer->mappable = wanted->mappable;
        status           = claim_memory(ctx, buffer, bytes_of);
        status           = fsdpi_agree(ctx, "fsdp_buffer_alloc", "memory", 0, status, true);
    }
    if (status != FSDP_OK && buffer != NULL) {
        give_up(ctx, buffer);
    }
    *made = buffer;
    return status;
}

static fsdp_status allocate(fsdp_context *ctx, const wish *wanted, fsdpi_buffer **made)
{
    uint64_t         *bytes_of = calloc((size_t)ctx->nodes.size, sizeof *bytes_of);
    const fsdp_status status   = make(ctx, wanted, bytes_of, made);

    free(bytes_of);
    return status;
}

/* `made` is NULL where no rank wants any. */
static fsdp_status allocate_for(fsdp_context *ctx, const wish *wanted, fsdpi_buffer **made)
{
    fsdpi_buffer *buffer;

    uint64_t most = wanted->bytes;

    *made = NULL;
    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allreduce(&most, 1, MPI_UINT64_T, MPI_MAX, ctx->comm, ctx->config.timeout_s));
    if (most == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(allocate(ctx, wanted, &buffer));
    buffer->number  = ++ctx->buffers.made;
    buffer->purpose = wanted->purpose;
    fsdpi_buffer_enter(&ctx->buffers, buffer);
    count_buffer(buffer);
    *made = buffer;
    return FSDP_OK;
}

/* `is_callers`: else whoever it is for releases it, also where fsdp_finalize() releases that. */
static fsdp_status allocate_named(fsdp_context *ctx, const wish *wanted, bool is_callers, void **memory)
{
    const char       *before = fsdpi_doing("fsdp_buffer_alloc");
    fsdpi_buffer     *buffer;
    const fsdp_status status = allocate_for(ctx, wanted, &buffer);

    (void)fsdpi_doing(before);
    *memory = buffer != NULL && wanted->bytes > 0 ? buffer->base : NULL;
    if (buffer != NULL && is_callers) {
        fsdpi_own(ctx, &buffer->owned, "symmetric buffer", buffer, release_leaked);
    }
    return status;
}

fsdp_status fsdpi_buffer_alloc(fsdp_context *ctx, fsdp_buffer_kind kind, fsdp_memory_kind purpose, size_t bytes,
                               bool mappable, void **memory)
{
    const wish wanted = {.kind = kind, .purpose = purpose, .bytes = bytes, .mappable = mappable};

    return allocate_named(ctx, &wanted, false, memory);
}

fsdp_status fsdp_buffer_alloc(fsdp_context *ctx, fsdp_buffer_kind kind, size_t bytes, void **memory)
{
    fsdp_status status = FSDP_OK;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_buffer_alloc: the context is NULL; pass one from fsdp_init");
    }
    if (memory == NULL) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_buffer_alloc: the place for the buffer is NULL");
    } else if ((int)kind < 0 || (int)kind >= N_KINDS) {
        status = fsdpi_fail_together(
            ctx, FSDP_ERR_ARG, "fsdp_buffer_alloc: %d is no kind of buffer; use one of fsdp_buffer_kind", (int)kind);
    } else if (kind == FSDP_BUFFER_DEVICE && ctx->gpu.device == NULL) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                     "fsdp_buffer_alloc: this context uses no GPU (%s); take host memory",
                                     fsdpi_gpu_why_none(ctx));
    }
    const fsdp_status agreed = fsdpi_agree(ctx, "fsdp_buffer_alloc", status == FSDP_OK ? KINDS[kind] : NULL,
                                           kind == FSDP_BUFFER_PER_NODE ? bytes : 0, status, true);
    if (agreed != FSDP_OK || memory == NULL) {
        return agreed;
    }
    const wish wanted = {.kind = kind, .purpose = FSDP_MEMORY_BUFFERS, .bytes = bytes};
    return allocate_named(ctx, &wanted, true, memory);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

static void keep_addresses(fsdpi_buffer *buffer)
{
    fsdp_context *ctx = buffer->ctx;

    if (buffer->segment.base != NULL) {
        fsdpi_segment_bury(&buffer->segment);
    }
    fsdpi_buffer_bury(&ctx->buffers, buffer);
    fsdpi_queue_forget_calls(&ctx->queue);
    fsdpi_buffer *oldest = fsdpi_buffer_oldest(&ctx->buffers, FREED_KEPT);
    if (oldest != NULL) {
        release(ctx, oldest);
        fsdpi_mapped_forget(&ctx->mapped); /* its own may be among them */
        fsdpi_pages_forget(&ctx->peers.open);
    }
}

static fsdp_status find_to_free(fsdp_context *ctx, const void *memory, fsdpi_buffer **buffer)
{
    *buffer = fsdpi_buffer_of(&ctx->buffers, memory, 0);
    if (*buffer == NULL || (*buffer)->base != memory) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_buffer_free: no symmetric buffer begins at %p", memory);
    }
    if ((*buffer)->freed) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_buffer_free: the buffer at %p has been freed before",
                                   memory);
    }
    return FSDP_OK;
}

/* The buffer that all ranks free: the one of the highest number, of which those who pass NULL must hold nothing. */
static fsdp_status find_common(fsdp_context *ctx, uint32_t mine, fsdpi_buffer **buffer)
{
    uint32_t highest = mine;

    const char       *before = fsdpi_doing("fsdp_buffer_free");
    const int         code = fsdpi_mpi_allreduce(&highest, 1, MPI_UINT32_T, MPI_MAX, ctx->comm, ctx->config.timeout_s);
    const fsdp_status told = code == MPI_SUCCESS ? FSDP_OK : fsdpi_fail_mpi(ctx, code, "fsdp_buffer_free");
    (void)fsdpi_doing(before);
    FSDP_TRY(told);
    *buffer = fsdpi_buffer_numbered(&ctx->buffers, highest);
    if (mine != highest && (mine != 0 || *buffer == NULL || (*buffer)->bytes > 0)) {
        return fsdpi_fail(ctx, FSDP_ERR_MISMATCH,
                          "fsdp_buffer_free: another buffer than on other ranks; free the same one on all");
    }
    return FSDP_OK;
}

/* Its addresses are not kept: the runtime gives them out again. */
static fsdp_status free_device(fsdp_context *ctx, fsdpi_buffer *buffer)
{
    unlink_live(buffer);
    close_parts(buffer);
    const fsdp_status closed = fsdpi_agree(ctx, "fsdp_buffer_free", "closed", 0, FSDP_OK, true);
    release(ctx, buffer);
    return closed;
}

void fsdpi_buffer_free_device(fsdp_context *ctx, const void *memory)
{
    fsdpi_buffer *buffer = fsdpi_buffer_beginning_at(&ctx->buffers, memory);

    if (buffer != NULL) {
        (void)free_device(ctx, buffer);
    }
}

fsdp_status fsdp_buffer_free(fsdp_context *ctx, void *memory)
{
    fsdpi_buffer *buffer = NULL;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_buffer_free: the context is NULL; pass the one it was allocated in");
    }
    const fsdp_status found = memory != NULL ? find_to_free(ctx, memory, &buffer) : FSDP_OK;
    FSDP_TRY(fsdpi_agree(ctx, "fsdp_buffer_free", NULL, 0, found, true));
    const fsdp_status common = find_common(ctx, buffer != NULL ? buffer->number : 0, &buffer);
    FSDP_TRY(fsdpi_agree(ctx, "fsdp_buffer_free", "the same", 0, common, true));
    if (buffer != NULL && buffer->kind == FSDP_BUFFER_DEVICE) {
        return free_device(ctx, buffer);
    }
    if (buffer != NULL) {
        unlink_live(buffer);
        keep_addresses(buffer);
    }
    return FSDP_OK;
}

void fsdpi_buffers_close(fsdp_context *ctx)
{
    while (ctx->buffers.left != NULL) {
        fsdpi_buffer *buffer = ctx->buffers.left;

        ctx->buffers.left = buffer->next;
        release(ctx, buffer);
    }
    for (fsdpi_buffer *buffer; (buffer = fsdpi_buffer_oldest(&ctx->buffers, 0)) != NULL;) {
        release(ctx, buffer);
    }
}

fsdp_status fsdp_buffer_peer(fsdp_context *ctx, const void *memory, int rank, void **peer)
{
    if (ctx == NULL || memory == NULL || peer == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_buffer_peer: a pointer is NULL");
    }
    const fsdpi_buffer *buffer = fsdpi_buffer_of(&ctx->buffers, memory, 0);
    if (buffer == NULL || buffer->freed) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_buffer_peer: %p is in no symmetric buffer of this rank", memory);
    }
    if (rank < 0 || rank >= ctx->size || !fsdpi_is_on_node(&ctx->nodes, rank)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_buffer_peer: rank %d is not on the node of rank %d", rank,
                          ctx->rank);
    }
    const fsdpi_buffer_part part   = fsdpi_buffer_part_of(buffer, fsdpi_position_of(&ctx->nodes, rank));
    const size_t            offset = (size_t)((const unsigned char *)memory - buffer->base);
    if (part.bytes > 0 && part.base == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED,
                          "fsdp_buffer_peer: the system does not let ranks reach each other's GPU memory");
    }
    if (offset > part.bytes) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_buffer_peer: offset %zu is beyond the %zu bytes of rank %d", offset,
                          part.bytes, rank);
    }
    *peer = part.base + offset;
    return FSDP_OK;
}
