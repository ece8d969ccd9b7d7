#include "lib/context.h"

#include <string.h>

#include "lib/device/gpu.h"
#include "lib/log.h"
#include "lib/memory.h"
#include "lib/settings.h"

static const char *const ISA_NAMES[] = {"auto", "scalar", "avx2", "avx512"};

static size_t operands_bytes(int size)
{
    return (size_t)size * sizeof(void *);
}

size_t fsdpi_context_bookkeeping(int size)
{
    return fsdpi_alloc_size(sizeof(fsdp_context)) + fsdpi_alloc_size(operands_bytes(size)) + fsdpi_queue_bookkeeping();
}

/* The context itself is the first of its own allocations. */
static fsdp_context *allocate_context(void)
{
    const size_t  bytes = fsdpi_alloc_size(sizeof(fsdp_context));
    fsdp_context *ctx   = fsdpi_device_host.alloc(bytes);

    if (ctx != NULL) {
        ctx->comm                                    = MPI_COMM_NULL;
        ctx->device                                  = &fsdpi_device_host;
        ctx->memory.current[FSDP_MEMORY_BOOKKEEPING] = bytes;
        ctx->memory.current_total                    = bytes;
        ctx->memory.peak_total                       = bytes;
        (void)pthread_mutex_init(&ctx->lock, NULL);
    }
    return ctx;
}

static fsdp_status check_communicator(MPI_Comm comm)
{
    int running = 0, ended = 0, inter = 0;

    (void)MPI_Initialized(&running);
    (void)MPI_Finalized(&ended);
    if (!running || ended) {
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

/* Duplicates, and finds out whether every rank has its context, before anything else is sent. */
static fsdp_status duplicate(MPI_Comm comm, fsdp_context *ctx)
{
    MPI_Comm copy = MPI_COMM_NULL;
    int      all  = ctx != NULL;

    FSDPI_TRY_MPI(NULL, MPI_Comm_dup(comm, &copy));
    if (MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, copy) != MPI_SUCCESS) {
        (void)MPI_Comm_free(&copy);
        return fsdpi_fail(NULL, FSDP_ERR_MPI, "fsdp_init: the duplicate of the communicator cannot be used");
    }
    if (!all) {
        (void)MPI_Comm_free(&copy);
        return fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_init: no memory for a context on at least one rank");
    }
    ctx->comm = copy;
    (void)MPI_Comm_rank(copy, &ctx->rank);
    (void)MPI_Comm_size(copy, &ctx->size);
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
    return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED,
                      "FSDP_ISA is '%s', which this processor or this build lacks; use 'auto'", name);
}

static fsdp_status check_staging(fsdp_context *ctx)
{
    const size_t least = (size_t)ctx->size * sizeof(fsdpi_verdict);

    if ((size_t)ctx->config.staging_bytes < least) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "FSDP_STAGING_BYTES is %lld; %d ranks need at least %zu",
                          (long long)ctx->config.staging_bytes, ctx->size, least);
    }
    return FSDP_OK;
}

/* What agreement itself needs is allocated first; a rank that cannot have even that leaves the others to their time-out. */
static fsdp_status allocate_parts(fsdp_context *ctx)
{
    const size_t least = (size_t)ctx->size * sizeof(fsdpi_verdict);

    if ((size_t)ctx->config.staging_bytes < least) {
        ctx->config.staging_bytes = (int64_t)least; /* refused in a moment; the refusal itself travels through it */
    }
    ctx->staging  = fsdpi_alloc(ctx, FSDP_MEMORY_STAGING, (size_t)ctx->config.staging_bytes);
    ctx->operands = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, operands_bytes(ctx->size));
    if (ctx->staging == NULL || ctx->operands == NULL) {
        return FSDP_ERR_MEMORY;
    }
    return fsdpi_queue_open(ctx);
}

static void release_context(fsdp_context *ctx)
{
    fsdpi_queue_close(ctx);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, ctx->operands, operands_bytes(ctx->size));
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, ctx->staging, (size_t)ctx->config.staging_bytes);
    if (ctx->comm != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&ctx->comm);
    }
    (void)pthread_mutex_destroy(&ctx->lock);
    fsdpi_device_host.release(ctx);
}

/* Everything after the duplicate exists: settings, kernels, memory, and all ranks' consent. */
static fsdp_status set_up(fsdp_context *ctx, const fsdp_config *config)
{
    char        settings[FSDPI_DETAIL_BYTES - 32];
    fsdp_status status = fsdpi_settings_resolve(config, &ctx->config);

    if (status != FSDP_OK) {
        (void)fsdpi_record(ctx, status, "%s", fsdp_last_error(NULL));
    }
    const fsdp_status staging = check_staging(ctx);
    status                    = status == FSDP_OK ? staging : status;
    FSDP_TRY(allocate_parts(ctx));
    if (status == FSDP_OK) {
        status = choose_kernels(ctx);
    }
    ctx->n_gpus = fsdpi_gpu_count();
    fsdpi_settings_describe(&ctx->config, settings, sizeof settings);
    return fsdpi_agree(ctx, "fsdp_init", settings, fsdpi_settings_fingerprint(&ctx->config), status, true);
}

fsdp_status fsdp_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_init: the place for the context is NULL");
    }
    *ctx = NULL;
    FSDP_TRY(check_communicator(comm));

    fsdp_context     *made   = allocate_context();
    const fsdp_status copied = duplicate(comm, made);
    if (copied != FSDP_OK) {
        if (made != NULL) {
            release_context(made);
        }
        return copied;
    }
    const fsdp_status status = set_up(made, config);
    if (status != FSDP_OK) {
        (void)fsdpi_record(NULL, status, "%s", made->error);
        release_context(made);
        return status;
    }
    if (made->rank == 0) {
        fsdpi_settings_warn_unknown(made);
    }
    fsdpi_log(made, FSDP_LOG_INFO, "context opened: %d ranks, %s kernels, %d GPUs", made->size, made->kernels->name,
              made->n_gpus);
    *ctx = made;
    return FSDP_OK;
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

fsdp_status fsdp_finalize(fsdp_context *ctx)
{
    if (ctx == NULL) {
        return FSDP_OK;
    }
    const size_t requests = fsdpi_queue_drain(ctx);
    const size_t objects  = release_owned(ctx);
    if (requests > 0) {
        fsdpi_log(ctx, FSDP_LOG_WARN, "fsdp_finalize: %zu requests were never waited for; wait for each one", requests);
    }
    if (ctx->broken !=
        FSDP_OK) { /* messages may still arrive: what they are written to, and their communicator, stay */
        (void)fsdpi_record(NULL, ctx->broken, "%s", ctx->error);
        return ctx->broken;
    }
    release_context(ctx);
    return objects + requests > 0 ? FSDP_ERR_LEAK : FSDP_OK;
}

int fsdp_rank(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->rank : -1;
}

int fsdp_size(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->size : -1;
}

double fsdp_wait_seconds(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->wait_seconds : 0.0;
}

void fsdpi_own(fsdp_context *ctx, fsdpi_owned *entry, const char *kind, void *object, void (*release)(void *))
{
    *entry     = (fsdpi_owned){.next = ctx->owned, .kind = kind, .object = object, .release = release};
    ctx->owned = entry;
}

void fsdpi_disown(fsdp_context *ctx, const fsdpi_owned *entry)
{
    for (fsdpi_owned **link = &ctx->owned; *link != NULL; link = &(*link)->next) {
        if (*link == entry) {
            *link = entry->next;
            return;
        }
    }
}
