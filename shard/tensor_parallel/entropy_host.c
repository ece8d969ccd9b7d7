#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"
#include "shard/tensor_parallel/entropy.h"

static bool is_wide(const fsdpi_entropy *e)
{
    return e->dtype == FSDP_F64;
}

static void *row_of(const fsdpi_entropy *e, size_t i)
{
    return (char *)e->logits + i * e->mine.count * fsdp_dtype_size(e->dtype);
}

static double logit(const fsdpi_entropy *e, const void *row, size_t k)
{
    return is_wide(e) ? ((const double *)row)[k] : (double)((const float *)row)[k];
}

static size_t work_bytes(const fsdpi_entropy *e)
{
    return 3 * e->rows * sizeof(double);
}

static fsdp_status open_work(fsdpi_entropy *e)
{
    e->work    = fsdpi_alloc(e->tp, FSDP_MEMORY_BOOKKEEPING, work_bytes(e));
    e->largest = e->work;
    e->sums    = e->largest + e->rows;
    return e->work != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

static fsdp_status close_work(fsdpi_entropy *e)
{
    fsdpi_free(e->tp, FSDP_MEMORY_BOOKKEEPING, e->work, work_bytes(e));
    return FSDP_OK;
}

static fsdp_status find_largest(fsdpi_entropy *e)
{
    for (size_t i = 0; i < e->rows; i++) {
        const void *row  = row_of(e, i);
        double      most = -INFINITY;

        for (size_t k = 0; k < e->mine.count; k++) {
            const double value = logit(e, row, k);

            most = value > most || isnan(value) ? value : most;
        }
        e->largest[i] = most;
    }
    return FSDP_OK;
}

static fsdp_status exponentiate(fsdpi_entropy *e)
{
    for (size_t i = 0; i < e->rows; i++) {
        void        *row    = row_of(e, i);
        const size_t target = (size_t)e->targets[i] - e->mine.begin;
        const bool   here   = e->targets[i] != FSDP_TP_NO_TARGET && target < e->mine.count;

        e->sums[2 * i + 1] = here ? logit(e, row, target) - e->largest[i] : 0.0;
        e->sums[2 * i]     = is_wide(e) ? fsdpi_exponentials_f64(row, e->mine.count, e->largest[i])
                                        : fsdpi_exponentials_f32(row, e->mine.count, (float)e->largest[i]);
    }
    return FSDP_OK;
}

static void take_target(const fsdpi_entropy *e, void *row, size_t target)
{
    if (target < e->mine.count && is_wide(e)) {
        ((double *)row)[target] -= e->scale;
    } else if (target < e->mine.count) {
        ((float *)row)[target] -= (float)e->scale;
    }
}

static fsdp_status finish(fsdpi_entropy *e)
{
    for (size_t i = 0; i < e->rows; i++) {
        void *row = row_of(e, i);

        if (e->targets[i] == FSDP_TP_NO_TARGET) {
            e->losses[i] = 0.0;
            memset(row, 0, e->mine.count * fsdp_dtype_size(e->dtype));
            continue;
        }
        e->losses[i] = log(e->sums[2 * i]) - e->sums[2 * i + 1];
        e->tp->kernels->scale(row, e->scale / e->sums[2 * i], e->mine.count, e->dtype);
        take_target(e, row, (size_t)e->targets[i] - e->mine.begin);
    }
    return FSDP_OK;
}

const fsdpi_entropy_ops fsdpi_entropy_on_host = {.open         = open_work,
                                                 .close        = close_work,
                                                 .find_largest = find_largest,
                                                 .exponentiate = exponentiate,
                                                 .finish       = finish};
