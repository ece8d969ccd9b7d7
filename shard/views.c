#include "shard/model.h"

#include "lib/memory.h"

static size_t pool_bytes(const fsdpi_pool *pool)
{
    return pool->n * pool->view_elements * sizeof(float);
}

fsdp_status fsdpi_pool_open(fsdp_context *ctx, fsdpi_pool *pool, fsdp_memory_kind kind, size_t n, size_t view_elements)
{
    *pool = (fsdpi_pool){.kind = kind, .n = n, .view_elements = view_elements};
    if (n == 0) {
        return FSDP_OK;
    }
    pool->memory = fsdpi_alloc(ctx, kind, pool_bytes(pool));
    pool->taken  = pool->memory != NULL ? fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof *pool->taken) : NULL;
    return pool->taken != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

void fsdpi_pool_close(fsdp_context *ctx, fsdpi_pool *pool)
{
    fsdpi_free(ctx, pool->kind, pool->memory, pool_bytes(pool));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, pool->taken, pool->n * sizeof *pool->taken);
    *pool = (fsdpi_pool){.kind = pool->kind};
}

float *fsdpi_pool_take(fsdpi_pool *pool)
{
    size_t i = 0;

    while (i < pool->n && pool->taken[i]) {
        i++;
    }
    if (i == pool->n) {
        return NULL;
    }
    pool->taken[i] = true;
    return pool->memory + i * pool->view_elements;
}

void fsdpi_pool_give_back(fsdpi_pool *pool, const float *view)
{
    if (view != NULL) {
        pool->taken[(size_t)(view - pool->memory) / pool->view_elements] = false;
    }
}

size_t fsdpi_pool_free_views(const fsdpi_pool *pool)
{
    size_t n = 0;

    for (size_t i = 0; i < pool->n; i++) {
        n += !pool->taken[i];
    }
    return n;
}

size_t fsdpi_views_needed(const fsdp_model *model)
{
    const size_t in_flight = (size_t)model->ctx->config.views_in_flight;

    return model->n_units < in_flight ? model->n_units : in_flight;
}
