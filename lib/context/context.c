#include "lib/context/context.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/settings.h"
#include "lib/record/dump.h"

int fsdp_node_count(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->nodes.count : -1;
}

int fsdp_node_index(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->nodes.mine : -1;
}

int fsdp_node_size(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->nodes.size : -1;
}

int fsdp_node_rank(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->nodes.position : -1;
}

int fsdp_has_progress_thread(const fsdp_context *ctx)
{
    return ctx != NULL && ctx->queue.has_thread;
}

double fsdp_progress_cpu_seconds(const fsdp_context *ctx)
{
    return ctx != NULL ? 1e-9 * (double)atomic_load(&ctx->queue.thread_nanoseconds) : 0.0;
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
    return ctx != NULL ? fsdpi_queue_wait_seconds(&((fsdp_context *)(uintptr_t)ctx)->queue) : 0.0;
}

double fsdp_wait_cpu_seconds(const fsdp_context *ctx)
{
    return ctx != NULL ? fsdpi_queue_wait_cpu_seconds(&((fsdp_context *)(uintptr_t)ctx)->queue) : 0.0;
}

const char *fsdp_last_algorithm(const fsdp_context *ctx)
{
    return ctx != NULL ? fsdpi_queue_last_algorithm(&((fsdp_context *)(uintptr_t)ctx)->queue) : "none";
}

size_t fsdp_cache_bytes(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->machine.cache_bytes : 0;
}

fsdp_status fsdp_algorithms_print(const fsdp_context *ctx, FILE *file)
{
    if (file == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_algorithms_print: the stream is NULL");
    }
    fsdpi_table_print(ctx != NULL ? &ctx->table : NULL, file);
    return FSDP_OK;
}

fsdp_status fsdp_cluster_of(const fsdp_context *ctx, fsdp_cluster *cluster)
{
    if (ctx == NULL || cluster == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_cluster_of: the context or the cluster is NULL");
    }
    *cluster = (fsdp_cluster){.nodes          = ctx->nodes.count,
                              .ranks_per_node = ctx->nodes.largest,
                              .latency_s      = ctx->link.alpha,
                              .bytes_per_s    = ctx->link.rate};
    return FSDP_OK;
}

static bool is_cluster(const fsdp_cluster *cluster)
{
    return cluster->nodes >= 2 && cluster->ranks_per_node >= 1 && cluster->latency_s >= 0 &&
           cluster->bytes_per_s >= 0 && isfinite(cluster->latency_s) && isfinite(cluster->bytes_per_s);
}

fsdp_status fsdp_algorithms_print_for(const fsdp_context *ctx, const fsdp_cluster *cluster, FILE *file)
{
    if (cluster == NULL || file == NULL || !is_cluster(cluster)) {
        return fsdpi_fail(
            NULL, FSDP_ERR_ARG,
            "fsdp_algorithms_print_for: give a stream, and a cluster of at least 2 nodes and 1 rank per node "
            "whose latency and rate are 0 or more");
    }
    fsdp_config config;
    fsdpi_link  link = {0};

    if (ctx != NULL) {
        config = ctx->config;
        link   = ctx->link;
    } else {
        fsdpi_error_print(NULL, fsdpi_settings_resolve(NULL, &config));
    }
    if (cluster->latency_s > 0) {
        link.alpha = cluster->latency_s;
        link.gap   = 0;
        link.busy  = 0;
    }
    link.rate               = cluster->bytes_per_s > 0 ? cluster->bytes_per_s : link.rate;
    const fsdpi_world world = {
        .nodes = cluster->nodes, .each = cluster->ranks_per_node, .staging_bytes = (size_t)config.staging_bytes};
    fsdpi_table_print_for(&world, &link, file);
    return FSDP_OK;
}

const char *fsdp_binding(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->binding.text : "";
}

fsdp_status fsdp_agree(fsdp_context *ctx, fsdp_status status, const char *detail)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_agree: the context is NULL");
    }
    if (status != FSDP_OK) {
        (void)fsdpi_record(ctx, status, "%.200s", detail != NULL ? detail : fsdp_status_text(status));
    }
    return fsdpi_agree_ahead(ctx, "agree", NULL, 0, status, true);
}

fsdp_status fsdp_record_write(fsdp_context *ctx, const char *folder)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_record_write: the context is NULL");
    }
    if (ctx->copy_of != 0) {
        return fsdpi_fail_copy(ctx);
    }
    folder = folder != NULL ? folder : ctx->config.record_dir;
    if (folder == NULL || folder[0] == '\0') {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_record_write: there is no folder; name one, or set FSDP_RECORD_DIR");
    }
    if (ctx->recorder.section == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_STATE,
                          "fsdp_record_write: nothing is recorded; set FSDP_RECORD to a number of operations above 0");
    }
    const int why = fsdpi_dump_write(folder);
    return why == 0 ? FSDP_OK
                    : fsdpi_fail(ctx, FSDP_ERR_IO, "fsdp_record_write: '%.200s' cannot be written in: %s", folder,
                                 strerror(why));
}

void fsdpi_own(fsdp_context *ctx, fsdpi_owned *entry, const char *kind, void *object, void (*release)(void *))
{
    fsdpi_lock_take(&ctx->owned_lock);
    *entry     = (fsdpi_owned){.next = ctx->owned, .kind = kind, .object = object, .release = release};
    ctx->owned = entry;
    fsdpi_lock_give(&ctx->owned_lock);
}

void fsdpi_disown(fsdp_context *ctx, const fsdpi_owned *entry)
{
    fsdpi_lock_take(&ctx->owned_lock);
    for (fsdpi_owned **link = &ctx->owned; *link != NULL; link = &(*link)->next) {
        if (*link == entry) {
            *link = entry->next;
            break;
        }
    }
    fsdpi_lock_give(&ctx->owned_lock);
}
