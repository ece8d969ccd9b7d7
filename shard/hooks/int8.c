/*
 * Block-wise int8 with error feedback. Rank r owns part r of the gradient, whole blocks:
 *   1. gradient + what is left of the last one, quantised part by part; part j goes to rank j;
 *   2. the owner adds what came, in rank order, divides by N, adds what is left of its last mean, quantises again;
 *   3. the parts are gathered and read back, by all ranks from the same bytes.
 * What is left is kept where it was lost: of 1 on every rank, of 2 on the owner.
 * Sends (N - 1) x packed part twice: about 2 (N - 1) / N x (1 + 4 / block) bytes per element.
 */
#include <stdio.h>

#include "lib/base/options.h"
#include "shard/hooks/hook.h"
#include "shard/state/int8_blocks.h"

enum { MOST_BLOCK = 65536 };

/* How a gradient is divided. */
typedef struct division {
    size_t count; /* ELEMENTS of all */
    size_t part;  /* of each rank's part, but for the last ones */
    size_t block;
    size_t slot; /* BYTES of a packed part */
    size_t ranks;
} division;

static division divide(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    division     d    = {.count = gradient->count, .block = hook->options.int8.block, .ranks = (size_t)gradient->ranks};
    const size_t even = (d.count + d.ranks - 1) / d.ranks;

    d.part = (even + d.block - 1) / d.block * d.block;
    d.slot = fsdpi_int8_blocks_bytes(d.part, d.block);
    return d;
}

static size_t part_begin(const division *d, size_t rank)
{
    return rank * d->part < d->count ? rank * d->part : d->count;
}

static size_t part_count(const division *d, size_t rank)
{
    return part_begin(d, rank + 1) - part_begin(d, rank);
}

static bool applies(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const division d = divide(hook, gradient);

    return d.ranks > 1 && d.slot * d.ranks < d.count * sizeof(float);
}

/* What is left of the gradient, and then of the mean of this rank's part. */
static size_t state_elements(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const division d = divide(hook, gradient);

    return d.count + d.part;
}

/* What is sent, what comes, and the mean of this rank's part. */
static size_t scratch_bytes(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const division d = divide(hook, gradient);

    return 2 * d.ranks * d.slot + d.part * sizeof(float);
}

typedef struct int8_reduction {
    const fsdpi_reduction *common;
    division               d;
    size_t                 me;
    float                 *left, *mean_left;
    unsigned char         *sent, *came;
    float                 *mean;
} int8_reduction;

static int8_reduction begin(const fsdpi_reduction *reduction)
{
    int8_reduction r = {.common = reduction,
                        .d      = divide(reduction->hook, reduction->gradient),
                        .me     = (size_t)reduction->ctx->rank,
                        .left   = reduction->state,
                        .sent   = reduction->scratch};

    r.mean_left = r.left + r.d.count;
    r.came      = r.sent + r.d.ranks * r.d.slot;
    r.mean      = (float *)(void *)(r.came + r.d.ranks * r.d.slot);
    return r;
}

static void add_in_place(const fsdp_context *ctx, float *x, const float *y, size_t n)
{
    const void *const terms[] = {x, y};

    ctx->kernels->reduce(x, terms, 2, n, FSDP_F32, FSDP_SUM, 1);
}

static void quantise_parts(const int8_reduction *r)
{
    float *values = r->common->gradient->values;

    add_in_place(r->common->ctx, values, r->left, r->d.count);
    for (size_t j = 0; j < r->d.ranks; j++) {
        fsdpi_int8_blocks_pack(values + part_begin(&r->d, j), part_count(&r->d, j), r->d.block,
                               r->sent + j * r->d.slot);
    }
}

/* Divided as FSDP_AVG does. */
static void average_own_part(const int8_reduction *r)
{
    const size_t n       = part_count(&r->d, r->me);
    const float  divisor = (float)r->d.ranks;

    fsdpi_int8_blocks_unpack(r->came, n, r->d.block, r->mean);
    for (size_t i = 1; i < r->d.ranks; i++) {
        fsdpi_int8_blocks_add(r->came + i * r->d.slot, n, r->d.block, r->mean);
    }
    for (size_t i = 0; i < n; i++) {
        r->mean[i] = r->mean[i] / divisor + r->mean_left[i];
    }
}

static bool is_finite(const int8_reduction *r)
{
    bool finite = true;

    for (size_t j = 0; j < r->d.ranks; j++) {
        finite = finite && fsdpi_int8_blocks_finite(r->came + j * r->d.slot, part_count(&r->d, j), r->d.block);
    }
    return finite;
}

/* Keeps what the two roundings have taken away. */
static void keep_rest(const int8_reduction *r)
{
    const fsdpi_device *device = r->common->ctx->device;

    device->copy(r->left, r->common->gradient->values, r->d.count * sizeof(float));
    for (size_t j = 0; j < r->d.ranks; j++) {
        fsdpi_int8_blocks_subtract(r->sent + j * r->d.slot, part_count(&r->d, j), r->d.block,
                                   r->left + part_begin(&r->d, j));
    }
    device->copy(r->mean_left, r->mean, part_count(&r->d, r->me) * sizeof(float));
    fsdpi_int8_blocks_subtract(r->came + r->me * r->d.slot, part_count(&r->d, r->me), r->d.block, r->mean_left);
}

static fsdp_status reduce(const fsdpi_reduction *reduction)
{
    const int8_reduction r   = begin(reduction);
    unsigned char *const own = r.came + r.me * r.d.slot;

    quantise_parts(&r);
    FSDP_TRY(fsdpi_alltoall(reduction->ctx, reduction->purpose, r.sent, r.came, r.d.slot, FSDP_U8));
    average_own_part(&r);
    fsdpi_int8_blocks_pack(r.mean, part_count(&r.d, r.me), r.d.block, own);
    FSDP_TRY(fsdpi_allgather(reduction->ctx, reduction->purpose, own, r.came, r.d.slot, FSDP_U8));
    fsdpi_hook_count_blocks(reduction, 2 * r.d.slot);
    if (is_finite(&r)) {
        keep_rest(&r);
    }
    for (size_t j = 0; j < r.d.ranks; j++) {
        fsdpi_int8_blocks_unpack(r.came + j * r.d.slot, part_count(&r.d, j), r.d.block,
                                 reduction->gradient->values + part_begin(&r.d, j));
    }
    return FSDP_OK;
}

/* The parts of ranks depend on how many there are, and on the block. */
static void name_saved(const fsdp_hook *hook, const fsdp_gradient *gradient, char *text, size_t size)
{
    (void)snprintf(text, size, "int8_error.%zu.of-%d", hook->options.int8.block, gradient->ranks);
}

const fsdpi_hook_method fsdpi_int8_method = {.applies        = applies,
                                             .state_elements = state_elements,
                                             .scratch_bytes  = scratch_bytes,
                                             .name_saved     = name_saved,
                                             .reduce         = reduce};

void fsdp_int8_options_init_size(fsdp_int8_options *options, size_t size)
{
    static const fsdp_int8_options defaults = FSDP_INT8_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

fsdp_status fsdp_hook_int8(fsdp_context *ctx, const fsdp_int8_options *options, fsdp_hook **hook)
{
    static const char function[] = "fsdp_hook_int8";
    fsdp_hook         plan       = {.method = &fsdpi_int8_method, .options.int8 = FSDP_INT8_OPTIONS_DEFAULT};
    char              label[32];

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    fsdp_status status =
        fsdpi_options_take(ctx, "fsdp_int8_options", options, &plan.options.int8, sizeof plan.options.int8);
    const size_t block = plan.options.int8.block;
    if (status == FSDP_OK && (block < 1 || block > MOST_BLOCK)) {
        status =
            fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: block is %zu; it must be 1 to %d", function, block, MOST_BLOCK);
    }
    (void)snprintf(label, sizeof label, "block %zu", block);
    return fsdpi_hook_make(ctx, function, &plan, label, status, hook);
}
