#include "fsdp/batch_norm.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "collectives/collectives.h"
#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

enum { LANES = 16, LABEL_BYTES = 160 };

/* Two sums of a channel, in separate lanes, so that one order of summation serves every vector length. */
typedef struct lanes {
    double first[LANES], second[LANES];
} lanes;

static double lanes_sum(const double *lane)
{
    double half[LANES];

    for (size_t k = 0; k < LANES; k++) {
        half[k] = lane[k];
    }
    for (size_t n = LANES / 2; n > 0; n /= 2) {
        for (size_t k = 0; k < n; k++) {
            half[k] += half[k + n];
        }
    }
    return half[0];
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool tensor_fits(const fsdp_batch_norm_shape *shape)
{
    size_t count = sizeof(float);

    return fsdpi_multiply(count, shape->samples, &count) && fsdpi_multiply(count, shape->channels, &count) &&
           fsdpi_multiply(count, shape->pixels, &count) && count <= PTRDIFF_MAX;
}

static fsdp_status check_shape(fsdp_context *ctx, const char *function, const fsdp_batch_norm_shape *shape)
{
    size_t bytes = 0;

    if (shape == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the shape is NULL; pass one", function);
    }
    if (shape->channels == 0) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the shape has 0 channels; there must be at least 1", function);
    }
    if (!tensor_fits(shape) || !fsdpi_multiply(shape->channels, 4 * sizeof(double) * (size_t)ctx->size, &bytes)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: %zu samples x %zu channels x %zu pixels are more bytes than memory can address; use "
                          "a smaller batch",
                          function, shape->samples, shape->channels, shape->pixels);
    }
    return FSDP_OK;
}

/* What fsdpi_options_take() has found is printed here: unlike others, these functions print on each rank. */
static fsdp_status take_options(fsdp_context *ctx, const char *function, const fsdp_batch_norm_options *given,
                                fsdp_batch_norm_options *options)
{
    if (given == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the options are NULL; pass FSDP_BATCH_NORM_OPTIONS_DEFAULT",
                          function);
    }
    const fsdp_status status = fsdpi_options_take(ctx, "fsdp_batch_norm_options", given, options, sizeof *options);
    fsdpi_error_print(ctx, status);
    FSDP_TRY(status);
    if (!(options->eps > 0.0 && isfinite(options->eps))) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: eps is %g; it must be above 0", function, options->eps);
    }
    if (!(options->momentum >= 0.0 && options->momentum <= 1.0)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: momentum is %g; it must be from 0 to 1", function, options->momentum);
    }
    return FSDP_OK;
}

/* A pointer that a function has been given, and its name. */
typedef struct argument {
    const char *name;
    const void *pointer;
} argument;

static fsdp_status check_pointers(fsdp_context *ctx, const char *function, const argument *arguments, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (arguments[i].pointer == NULL) {
            return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: `%s` is NULL; pass memory for it", function, arguments[i].name);
        }
    }
    return FSDP_OK;
}

/* The tensors of a batch may be NULL where this rank has none of it. */
static fsdp_status check_tensors(fsdp_context *ctx, const char *function, const fsdp_batch_norm_shape *shape,
                                 const argument *arguments, size_t n)
{
    return shape->samples * shape->pixels > 0 ? check_pointers(ctx, function, arguments, n) : FSDP_OK;
}

static fsdp_status check_running(fsdp_context *ctx, const char *function, const fsdp_batch_norm_running *running)
{
    if (running != NULL && (running->mean == NULL || running->variance == NULL)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the running statistics lack an array; pass two, or NULL for none",
                          function);
    }
    return FSDP_OK;
}

static fsdp_status check_saved(fsdp_context *ctx, const char *function, const fsdp_batch_norm_saved *saved)
{
    if (saved == NULL || saved->mean == NULL || saved->scale == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: `saved` is NULL or lacks an array; it needs one for mean and scale",
                          function);
    }
    return FSDP_OK;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* What is known of one channel: how many elements, their mean, and the sum of squared deviations from it. */
typedef struct moments {
    double count, mean, deviations;
} moments;

static void add_deviations(lanes *sums, const float *x, size_t n, double origin)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            const double d = (double)x[i + k] - origin;
            sums->first[k] += d;
            sums->second[k] += d * d;
        }
    }
    for (size_t k = 0; i + k < n; k++) {
        const double d = (double)x[i + k] - origin;
        sums->first[k] += d;
        sums->second[k] += d * d;
    }
}

/* One pass over this rank's part of a channel. Deviations are from its first element: near enough to the mean that the
 * difference of the two sums cancels little. */
static moments local_moments(const fsdp_batch_norm_shape *shape, const float *x, size_t channel)
{
    const double count  = (double)shape->samples * (double)shape->pixels;
    const size_t stride = shape->channels * shape->pixels;
    lanes        sums   = {{0}, {0}};

    if (!(count > 0.0)) {
        return (moments){0.0, 0.0, 0.0};
    }
    const double origin = (double)x[channel * shape->pixels];
    for (size_t s = 0; s < shape->samples; s++) {
        add_deviations(&sums, x + s * stride + channel * shape->pixels, shape->pixels, origin);
    }
    const double sum        = lanes_sum(sums.first);
    const double deviations = lanes_sum(sums.second) - sum * sum / count;
    return (moments){count, origin + sum / count, deviations < 0.0 ? 0.0 : deviations};
}

static moments merged(moments a, moments b)
{
    if (!(b.count > 0.0)) {
        return a;
    }
    const double count = a.count + b.count, delta = b.mean - a.mean;
    return (moments){count, a.mean + delta * (b.count / count),
                     a.deviations + b.deviations + delta * delta * (a.count * (b.count / count))};
}

/* What each rank sends: its count, then its means, then its sums of squared deviations. */
static size_t record_length(const fsdp_batch_norm_shape *shape)
{
    return 1 + 2 * shape->channels;
}

static void fill_record(const fsdp_batch_norm_shape *shape, const float *x, double *record)
{
    record[0] = (double)shape->samples * (double)shape->pixels;
    for (size_t c = 0; c < shape->channels; c++) {
        const moments mine              = local_moments(shape, x, c);
        record[1 + c]                   = mine.mean;
        record[1 + shape->channels + c] = mine.deviations;
    }
}

/* Of all ranks, in rank order. */
static moments channel_moments(const fsdp_batch_norm_shape *shape, int size, const double *records, size_t channel)
{
    moments all = {0.0, 0.0, 0.0};

    for (int r = 0; r < size; r++) {
        const double *record = records + (size_t)r * record_length(shape);
        all = merged(all, (moments){record[0], record[1 + channel], record[1 + shape->channels + channel]});
    }
    return all;
}

static float moved(float from, double to, double momentum)
{
    return (float)((1.0 - momentum) * (double)from + momentum * to);
}

static void update_running(fsdp_batch_norm_running *running, size_t channel, moments all, double momentum)
{
    running->mean[channel]     = moved(running->mean[channel], all.mean, momentum);
    running->variance[channel] = moved(running->variance[channel], all.deviations / (all.count - 1.0), momentum);
}

/* y = (x - mean) * scale + bias. The mean is subtracted in f32, where that is nearly exact; what rounding it has lost goes
 * into the bias. */
static void normalize_channel(const fsdp_batch_norm_shape *shape, const float *x, size_t channel, double mean,
                              double scale, double bias, float *y)
{
    const float  centre = (float)mean, factor = (float)scale;
    const float  offset = (float)(bias - (mean - (double)centre) * scale);
    const size_t stride = shape->channels * shape->pixels;

    for (size_t s = 0; s < shape->samples; s++) {
        const size_t begin = s * stride + channel * shape->pixels;

        for (size_t i = begin; i < begin + shape->pixels; i++) {
            y[i] = (x[i] - centre) * factor + offset;
        }
    }
}

static fsdp_status check_forward(fsdp_context *ctx, const char *function, const fsdp_batch_norm_shape *shape,
                                 const fsdp_batch_norm_options *given, fsdp_batch_norm_options *options,
                                 const argument always[2], const argument tensors[2],
                                 const fsdp_batch_norm_running *running, const fsdp_batch_norm_saved *saved)
{
    FSDP_TRY(check_shape(ctx, function, shape));
    FSDP_TRY(take_options(ctx, function, given, options));
    FSDP_TRY(check_pointers(ctx, function, always, 2));
    FSDP_TRY(check_tensors(ctx, function, shape, tensors, 2));
    FSDP_TRY(check_running(ctx, function, running));
    return check_saved(ctx, function, saved);
}

void fsdp_batch_norm_options_init_size(fsdp_batch_norm_options *options, size_t size)
{
    static const fsdp_batch_norm_options defaults = FSDP_BATCH_NORM_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

/* Gathers the moments of all ranks. */
static fsdp_status exchange_moments(fsdp_context *ctx, const char *function, const fsdp_batch_norm_shape *shape,
                                    const fsdp_batch_norm_options *options, const float *x, double *records)
{
    char                label[LABEL_BYTES];
    const fsdpi_purpose purpose = {.name = function, .label = label, .status = FSDP_OK};

    (void)snprintf(label, sizeof label, "%zu channels, eps %.17g, momentum %.17g", shape->channels, options->eps,
                   options->momentum);
    fill_record(shape, x, records + (size_t)ctx->rank * record_length(shape));
    return fsdpi_allgather(ctx, &purpose, FSDP_IN_PLACE, records, record_length(shape), FSDP_F64);
}

static double counted(const fsdp_batch_norm_shape *shape, int size, const double *records)
{
    double count = 0.0;

    for (int r = 0; r < size; r++) {
        count += records[(size_t)r * record_length(shape)];
    }
    return count;
}

fsdp_status fsdp_batch_norm_forward(fsdp_context *ctx, const fsdp_batch_norm_shape *shape,
                                    const fsdp_batch_norm_options *options, const float *x, const float *weight,
                                    const float *bias, fsdp_batch_norm_running *running, float *y,
                                    fsdp_batch_norm_saved *saved)
{
    static const char       function[] = "fsdp_batch_norm_forward";
    const argument          always[] = {{"weight", weight}, {"bias", bias}}, tensors[] = {{"x", x}, {"y", y}};
    fsdp_batch_norm_options chosen = FSDP_BATCH_NORM_OPTIONS_DEFAULT;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    fsdp_status  status = check_forward(ctx, function, shape, options, &chosen, always, tensors, running, saved);
    const size_t bytes  = status == FSDP_OK ? (size_t)ctx->size * record_length(shape) * sizeof(double) : 0;
    double      *all    = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, bytes);

    if (all == NULL) { /* the other ranks are told where they wait */
        const fsdpi_purpose purpose = {.name = function, .status = status != FSDP_OK ? status : FSDP_ERR_MEMORY};
        return fsdpi_allgather(ctx, &purpose, NULL, NULL, 0, FSDP_F64);
    }
    status = exchange_moments(ctx, function, shape, &chosen, x, all);
    if (status == FSDP_OK && counted(shape, ctx->size, all) < 2.0) {
        status = fsdpi_fail(ctx, FSDP_ERR_ARG,
                            "%s: all ranks together have %.0f elements per channel, whose variance is not known; use a "
                            "larger batch",
                            function, counted(shape, ctx->size, all));
    }
    for (size_t c = 0; status == FSDP_OK && c < shape->channels; c++) {
        const moments m = channel_moments(shape, ctx->size, all, c);

        saved->count    = m.count;
        saved->mean[c]  = m.mean;
        saved->scale[c] = 1.0 / sqrt(m.deviations / m.count + chosen.eps);
        normalize_channel(shape, x, c, m.mean, saved->scale[c] * (double)weight[c], (double)bias[c], y);
        if (running != NULL) {
            update_running(running, c, m, chosen.momentum);
        }
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, all, bytes);
    return status;
}

fsdp_status fsdp_batch_norm_evaluate(fsdp_context *ctx, const fsdp_batch_norm_shape *shape,
                                     const fsdp_batch_norm_options *options, const float *x, const float *weight,
                                     const float *bias, const fsdp_batch_norm_running *running, float *y)
{
    static const char       function[] = "fsdp_batch_norm_evaluate";
    const argument          always[]   = {{"weight", weight}, {"bias", bias}, {"running", running}};
    const argument          tensors[]  = {{"x", x}, {"y", y}};
    fsdp_batch_norm_options chosen     = FSDP_BATCH_NORM_OPTIONS_DEFAULT;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    FSDP_TRY(check_shape(ctx, function, shape));
    FSDP_TRY(take_options(ctx, function, options, &chosen));
    FSDP_TRY(check_pointers(ctx, function, always, 3));
    FSDP_TRY(check_tensors(ctx, function, shape, tensors, 2));
    FSDP_TRY(check_running(ctx, function, running));
    for (size_t c = 0; c < shape->channels; c++) {
        const double scale = 1.0 / sqrt((double)running->variance[c] + chosen.eps);

        normalize_channel(shape, x, c, (double)running->mean[c], scale * (double)weight[c], (double)bias[c], y);
    }
    return FSDP_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* The sums of dy, and of dy times the deviation of x. */
static void add_products(lanes *sums, const float *x, const float *dy, size_t n, double mean)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            sums->first[k] += (double)dy[i + k];
            sums->second[k] += (double)dy[i + k] * ((double)x[i + k] - mean);
        }
    }
    for (size_t k = 0; i + k < n; k++) {
        sums->first[k] += (double)dy[i + k];
        sums->second[k] += (double)dy[i + k] * ((double)x[i + k] - mean);
    }
}

/* This rank's gradients by weight and bias: the sums of dy x normalized x, and of dy. */
static void local_gradients(const fsdp_batch_norm_shape *shape, const float *x, const fsdp_batch_norm_saved *saved,
                            const float *dy, double *by_weight, double *by_bias)
{
    const size_t stride = shape->channels * shape->pixels;

    for (size_t c = 0; c < shape->channels; c++) {
        lanes sums = {{0}, {0}};

        for (size_t s = 0; s < shape->samples; s++) {
            const size_t begin = s * stride + c * shape->pixels;
            add_products(&sums, x + begin, dy + begin, shape->pixels, saved->mean[c]);
        }
        by_bias[c]   = lanes_sum(sums.first);
        by_weight[c] = lanes_sum(sums.second) * saved->scale[c];
    }
}

/* dx = weight scale (dy - mean(dy) - xhat mean(dy xhat)) with xhat = (x - mean) scale, the means over all ranks. */
static void channel_backward(const fsdp_batch_norm_shape *shape, const float *x, size_t channel, double weight,
                             const fsdp_batch_norm_saved *saved, double by_weight, double by_bias, const float *dy,
                             float *dx)
{
    const double mean = saved->mean[channel], slope = by_weight / saved->count * saved->scale[channel];
    const float  centre = (float)mean, factor = (float)(weight * saved->scale[channel]), per_x = (float)slope;
    const float  level  = (float)(by_bias / saved->count + ((double)centre - mean) * slope);
    const size_t stride = shape->channels * shape->pixels;

    for (size_t s = 0; s < shape->samples; s++) {
        const size_t begin = s * stride + channel * shape->pixels;

        for (size_t i = begin; i < begin + shape->pixels; i++) {
            dx[i] = factor * (dy[i] - level - (x[i] - centre) * per_x);
        }
    }
}

static fsdp_status check_backward(fsdp_context *ctx, const char *function, const fsdp_batch_norm_shape *shape,
                                  const argument always[3], const argument tensors[3],
                                  const fsdp_batch_norm_saved *saved)
{
    FSDP_TRY(check_shape(ctx, function, shape));
    FSDP_TRY(check_pointers(ctx, function, always, 3));
    FSDP_TRY(check_tensors(ctx, function, shape, tensors, 3));
    return check_saved(ctx, function, saved);
}

/* Reduces the sums of all ranks, from `mine` to `sums`. */
static fsdp_status exchange_gradients(fsdp_context *ctx, const char *function, const fsdp_batch_norm_shape *shape,
                                      const fsdp_batch_norm_saved *saved, const double *mine, double *sums)
{
    char                label[LABEL_BYTES];
    const fsdpi_purpose purpose = {.name = function, .label = label, .status = FSDP_OK};

    (void)snprintf(label, sizeof label, "%zu channels of %.0f elements", shape->channels, saved->count);
    return fsdpi_allreduce(ctx, &purpose, mine, sums, 2 * shape->channels, FSDP_F64, FSDP_SUM);
}

fsdp_status fsdp_batch_norm_backward(fsdp_context *ctx, const fsdp_batch_norm_shape *shape, const float *x,
                                     const float *weight, const fsdp_batch_norm_saved *saved, const float *dy,
                                     float *dx, float *d_weight, float *d_bias)
{
    static const char function[] = "fsdp_batch_norm_backward";
    const argument    always[]   = {{"weight", weight}, {"d_weight", d_weight}, {"d_bias", d_bias}};
    const argument    tensors[]  = {{"x", x}, {"dy", dy}, {"dx", dx}};

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    fsdp_status  status = check_backward(ctx, function, shape, always, tensors, saved);
    const size_t n = status == FSDP_OK ? shape->channels : 0, bytes = 4 * n * sizeof(double);
    double      *mine = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, bytes);

    if (mine == NULL) { /* the other ranks are told where they wait */
        const fsdpi_purpose purpose = {.name = function, .status = status != FSDP_OK ? status : FSDP_ERR_MEMORY};
        return fsdpi_allreduce(ctx, &purpose, NULL, NULL, 0, FSDP_F64, FSDP_SUM);
    }
    double *all = mine + 2 * n;
    local_gradients(shape, x, saved, dy, mine, mine + n);
    status = exchange_gradients(ctx, function, shape, saved, mine, all);
    for (size_t c = 0; status == FSDP_OK && c < n; c++) {
        channel_backward(shape, x, c, (double)weight[c], saved, all[c], all[n + c], dy, dx);
        d_weight[c] += (float)mine[c];
        d_bias[c] += (float)mine[n + c];
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, mine, bytes);
    return status;
}
