/*
 * Batch normalization held to a serial recomputation in double: every rank computes the batch of all ranks, concatenates
 * it, and normalizes it as the paper writes it. Gradients are held to central differences of that recomputation.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/batch_norm.h"
#include "fsdp/context.h"
#include "tests/support/mpi_test.h"

enum { MOST_CHANNELS = 17, MOST_RANKS = 8, N_DIVISIONS = 4, CHECKED = 40 };

#define EPS        1e-5
#define MOMENTUM   0.1
#define DIFFERENCE 1e-4

/* How many samples each rank has: equally many; more on later ranks; none on the first; all on the last. */
static size_t samples_of(int division, int rank, int size)
{
    switch (division) {
    case 0:
        return 3;
    case 1:
        return 2 + 2 * (size_t)rank;
    case 2:
        return rank == 0 && size > 1 ? 0 : 4;
    default:
        return rank == size - 1 ? 6 : 0;
    }
}

static const struct {
    size_t channels, pixels;
} SHAPES[] = {{3, 49}, {MOST_CHANNELS, 1}, {1, 16}, {2, 35}};
#define N_SHAPES (sizeof SHAPES / sizeof SHAPES[0])

/* Between -1 and 1, for the element `i` of channel `c` of sample `s` of the whole batch. */
static double noise(unsigned what, size_t s, size_t c, size_t i)
{
    uint64_t h = what + 11 * s + 1009 * c + 100003 * i + 1;

    for (int round = 0; round < 3; round++) {
        h = (h ^ (h >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    return (double)(int32_t)(h >> 32) / 2147483648.0;
}

/* Channel 1 is far from 0, channel 2 hardly moves. */
static float x_of(size_t s, size_t c, size_t i)
{
    const double spread = c == 2 ? 1e-3 : 1.0 + (double)c, centre = c == 1 ? 300.0 : 0.5 * (double)c;

    return (float)(centre + spread * noise(1, s, c, i));
}

static float dy_of(size_t s, size_t c, size_t i)
{
    return (float)noise(2, s, c, i);
}

static float weight_of(size_t c)
{
    return (float)(1.0 + 0.5 * noise(3, 0, c, 0));
}

static float bias_of(size_t c)
{
    return (float)noise(4, 0, c, 0);
}

/* The batch of all ranks, and this rank's part of it. */
typedef struct batch {
    fsdp_batch_norm_shape   shape;   /* this rank's */
    size_t                  first;   /* its first sample */
    size_t                  samples; /* of all */
    float                  *x, *y, *dy, *dx;
    float                   weight[MOST_CHANNELS], bias[MOST_CHANNELS], d_weight[MOST_CHANNELS], d_bias[MOST_CHANNELS];
    float                   running_mean[MOST_CHANNELS], running_variance[MOST_CHANNELS];
    double                  mean[MOST_CHANNELS], scale[MOST_CHANNELS];
    fsdp_batch_norm_running running;
    fsdp_batch_norm_saved   saved;
} batch;

static size_t elements(const batch *b)
{
    return b->shape.samples * b->shape.channels * b->shape.pixels;
}

static size_t position(const batch *b, size_t s, size_t c, size_t i)
{
    return ((s - b->first) * b->shape.channels + c) * b->shape.pixels + i;
}

static void fill_channel(batch *b, size_t c)
{
    b->weight[c]           = weight_of(c);
    b->bias[c]             = bias_of(c);
    b->d_weight[c]         = 10.0F;
    b->d_bias[c]           = -10.0F;
    b->running_mean[c]     = 5.0F;
    b->running_variance[c] = 2.0F;
    for (size_t s = b->first; s < b->first + b->shape.samples; s++) {
        for (size_t i = 0; i < b->shape.pixels; i++) {
            b->x[position(b, s, c, i)]  = x_of(s, c, i);
            b->dy[position(b, s, c, i)] = dy_of(s, c, i);
        }
    }
}

static void open_batch(batch *b, fsdp_context *ctx, size_t which, int division)
{
    memset(b, 0, sizeof *b);
    b->shape = (fsdp_batch_norm_shape){samples_of(division, fsdp_rank(ctx), fsdp_size(ctx)), SHAPES[which].channels,
                                       SHAPES[which].pixels};
    for (int r = 0; r < fsdp_size(ctx); r++) {
        const size_t n = samples_of(division, r, fsdp_size(ctx));
        b->first += r < fsdp_rank(ctx) ? n : 0;
        b->samples += n;
    }
    if (elements(b) > 0) {
        b->x = calloc(4 * elements(b), sizeof *b->x);
        assert_non_null(b->x);
        b->y  = b->x + elements(b);
        b->dy = b->y + elements(b);
        b->dx = b->dy + elements(b);
    }
    for (size_t c = 0; c < b->shape.channels; c++) {
        fill_channel(b, c);
    }
    b->running = (fsdp_batch_norm_running){b->running_mean, b->running_variance};
    b->saved   = (fsdp_batch_norm_saved){.mean = b->mean, .scale = b->scale};
}

static void close_batch(batch *b)
{
    free(b->x);
}

static const fsdp_batch_norm_options OPTIONS = {sizeof OPTIONS, EPS, MOMENTUM};

static fsdp_status forward(fsdp_context *ctx, batch *b)
{
    return fsdp_batch_norm_forward(ctx, &b->shape, &OPTIONS, b->x, b->weight, b->bias, &b->running, b->y, &b->saved);
}

static fsdp_status backward(fsdp_context *ctx, batch *b)
{
    return fsdp_batch_norm_backward(ctx, &b->shape, b->x, b->weight, &b->saved, b->dy, b->dx, b->d_weight, b->d_bias);
}

/* ---- the reference ----------------------------------------------------------------------------------------------- */

/* One element of x, at (s, c, i), that is `by` larger than it is. */
typedef struct nudge {
    size_t s, c, i;
    double by;
} nudge;

static double nudged_x(const nudge *n, size_t s, size_t c, size_t i)
{
    return (double)x_of(s, c, i) + (n != NULL && s == n->s && c == n->c && i == n->i ? n->by : 0.0);
}

/* Mean and biased variance of a channel of the whole batch. */
static void serial_statistics(const batch *b, size_t c, const nudge *n, double *mean, double *variance)
{
    const double count = (double)(b->samples * b->shape.pixels);

    *mean = *variance = 0.0;
    for (size_t s = 0; s < b->samples; s++) {
        for (size_t i = 0; i < b->shape.pixels; i++) {
            *mean += nudged_x(n, s, c, i) / count;
        }
    }
    for (size_t s = 0; s < b->samples; s++) {
        for (size_t i = 0; i < b->shape.pixels; i++) {
            const double d = nudged_x(n, s, c, i) - *mean;
            *variance += d * d / count;
        }
    }
}

/* The sum over a channel of the whole batch of y dy, the loss whose gradient by y is dy. */
static double serial_loss(const batch *b, size_t c, const nudge *n, double weight, double bias)
{
    double mean, variance, loss = 0.0;

    serial_statistics(b, c, n, &mean, &variance);
    for (size_t s = 0; s < b->samples; s++) {
        for (size_t i = 0; i < b->shape.pixels; i++) {
            const double y = (nudged_x(n, s, c, i) - mean) / sqrt(variance + EPS) * weight + bias;
            loss += y * (double)dy_of(s, c, i);
        }
    }
    return loss;
}

static void assert_close(double expected, double found, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) {
        fail_msg("%.9g instead of %.9g", found, expected);
    }
}

static void assert_relative(double expected, double found, double tolerance)
{
    assert_close(expected, found, tolerance * fabs(expected));
}

/* Equal to the bit on all ranks. */
static void assert_same_everywhere(const void *mine, size_t bytes)
{
    unsigned char *first = malloc(bytes);

    assert_non_null(first);
    memcpy(first, mine, bytes);
    MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    assert_memory_equal(first, mine, bytes);
    free(first);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void check_forward_channel(const batch *b, size_t c)
{
    const double count = (double)(b->samples * b->shape.pixels);
    double       mean, variance;

    serial_statistics(b, c, NULL, &mean, &variance);
    assert_close(mean, b->mean[c], 1e-6 * (fabs(mean) + sqrt(variance)));
    assert_relative(1.0 / sqrt(variance + EPS), b->scale[c], 1e-6);
    assert_relative(0.9 * 5.0 + 0.1 * mean, (double)b->running_mean[c], 1e-6);
    assert_relative(0.9 * 2.0 + 0.1 * variance * count / (count - 1.0), (double)b->running_variance[c], 1e-6);
    for (size_t s = b->first; s < b->first + b->shape.samples; s++) {
        for (size_t i = 0; i < b->shape.pixels; i++) {
            const double y = ((double)x_of(s, c, i) - mean) / sqrt(variance + EPS) * (double)b->weight[c];
            assert_close(y + (double)b->bias[c], (double)b->y[position(b, s, c, i)], 2e-6);
        }
    }
}

static void forward_equals_a_serial_recomputation_of_the_whole_batch(void **state)
{
    for (size_t which = 0; which < N_SHAPES; which++) {
        for (int division = 0; division < N_DIVISIONS; division++) {
            batch b;

            open_batch(&b, *state, which, division);
            assert_int_equal(FSDP_OK, forward(*state, &b));
            assert_true(b.saved.count == (double)(b.samples * b.shape.pixels));
            for (size_t c = 0; c < b.shape.channels; c++) {
                check_forward_channel(&b, c);
            }
            assert_same_everywhere(b.mean, sizeof b.mean);
            assert_same_everywhere(b.scale, sizeof b.scale);
            assert_same_everywhere(b.running_mean, sizeof b.running_mean);
            assert_same_everywhere(b.running_variance, sizeof b.running_variance);
            close_batch(&b);
        }
    }
}

/* By central differences, at some elements of this rank's part. */
static void check_dx(const batch *b)
{
    const size_t n = elements(b), step = n / CHECKED + 1, per_sample = b->shape.channels * b->shape.pixels;

    for (size_t e = 0; e < n; e += step) {
        const size_t c   = e % per_sample / b->shape.pixels;
        nudge        n_x = {b->first + e / per_sample, c, e % b->shape.pixels, c == 2 ? 1e-7 : DIFFERENCE};
        double       above, below;

        above  = serial_loss(b, c, &n_x, (double)b->weight[c], (double)b->bias[c]);
        n_x.by = -n_x.by;
        below  = serial_loss(b, c, &n_x, (double)b->weight[c], (double)b->bias[c]);
        assert_close((below - above) / (2.0 * n_x.by), (double)b->dx[e], 2e-6 * b->scale[c]);
    }
}

/* Gradients by weight and bias, of this rank only, add up to that of the whole batch. */
static void check_parameter_gradients(const batch *b)
{
    for (size_t c = 0; c < b->shape.channels; c++) {
        const double w = (double)b->weight[c], v = (double)b->bias[c];
        double       sums[] = {(double)b->d_weight[c] - 10.0, (double)b->d_bias[c] + 10.0};

        MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        assert_close(serial_loss(b, c, NULL, w + 0.5, v) - serial_loss(b, c, NULL, w - 0.5, v), sums[0], 1e-4);
        assert_close(serial_loss(b, c, NULL, w, v + 0.5) - serial_loss(b, c, NULL, w, v - 0.5), sums[1], 1e-4);
    }
}

static void gradients_equal_central_differences_of_the_whole_batch(void **state)
{
    for (size_t which = 0; which < N_SHAPES; which++) {
        for (int division = 0; division < N_DIVISIONS; division++) {
            batch b;

            open_batch(&b, *state, which, division);
            assert_int_equal(FSDP_OK, forward(*state, &b));
            assert_int_equal(FSDP_OK, backward(*state, &b));
            check_dx(&b);
            check_parameter_gradients(&b);
            close_batch(&b);
        }
    }
}

static void the_gradient_may_be_replaced_in_place(void **state)
{
    batch apart, within;

    open_batch(&apart, *state, 0, 1);
    open_batch(&within, *state, 0, 1);
    within.dx = within.dy;
    assert_int_equal(FSDP_OK, forward(*state, &apart));
    assert_int_equal(FSDP_OK, backward(*state, &apart));
    assert_int_equal(FSDP_OK, forward(*state, &within));
    assert_int_equal(FSDP_OK, backward(*state, &within));
    assert_memory_equal(apart.dx, within.dx, elements(&apart) * sizeof *apart.dx);
    close_batch(&apart);
    close_batch(&within);
}

static void two_runs_give_the_same_bits(void **state)
{
    batch first, again;

    open_batch(&first, *state, 3, 1);
    open_batch(&again, *state, 3, 1);
    assert_int_equal(FSDP_OK, forward(*state, &first));
    assert_int_equal(FSDP_OK, backward(*state, &first));
    assert_int_equal(FSDP_OK, forward(*state, &again));
    assert_int_equal(FSDP_OK, backward(*state, &again));
    assert_memory_equal(first.y, again.y, elements(&first) * sizeof *first.y);
    assert_memory_equal(first.dx, again.dx, elements(&first) * sizeof *first.dx);
    assert_memory_equal(first.mean, again.mean, sizeof first.mean);
    assert_memory_equal(first.d_weight, again.d_weight, sizeof first.d_weight);
    close_batch(&first);
    close_batch(&again);
}

static void constant_channels_become_their_bias(void **state)
{
    batch b;

    open_batch(&b, *state, 0, 0);
    for (size_t e = 0; e < elements(&b); e++) {
        b.x[e] = 1234.567F;
    }
    assert_int_equal(FSDP_OK, forward(*state, &b));
    assert_true(b.scale[0] == 1.0 / sqrt(EPS)); /* a variance of 0 */
    for (size_t i = 0; i < b.shape.pixels; i++) {
        assert_close((double)b.bias[0], (double)b.y[i], 1e-6);
    }
    close_batch(&b);
}

static void running_statistics_are_optional_and_serve_evaluation(void **state)
{
    batch                         b;
    const fsdp_batch_norm_options last = {sizeof last, EPS, 1.0}; /* running statistics are those of the last batch */

    open_batch(&b, *state, 0, 1);
    assert_int_equal(FSDP_OK,
                     fsdp_batch_norm_forward(*state, &b.shape, &OPTIONS, b.x, b.weight, b.bias, NULL, b.y, &b.saved));
    assert_true(b.running_mean[0] == 5.0F && b.running_variance[0] == 2.0F);
    assert_int_equal(
        FSDP_OK, fsdp_batch_norm_forward(*state, &b.shape, &last, b.x, b.weight, b.bias, &b.running, b.y, &b.saved));
    assert_int_equal(FSDP_OK,
                     fsdp_batch_norm_evaluate(*state, &b.shape, &OPTIONS, b.x, b.weight, b.bias, &b.running, b.x));
    for (size_t c = 0; c < b.shape.channels; c++) { /* x now holds what was evaluated in place */
        double mean, variance, ratio;

        serial_statistics(&b, c, NULL, &mean, &variance);
        ratio = sqrt((variance + EPS) / ((double)b.running_variance[c] + EPS));
        for (size_t i = 0; i < b.shape.pixels; i++) {
            const double y = ((double)b.y[position(&b, b.first, c, i)] - (double)b.bias[c]) * ratio;
            assert_close(y + (double)b.bias[c], (double)b.x[position(&b, b.first, c, i)], 3e-5);
        }
    }
    close_batch(&b);
}

static void a_batch_of_one_element_is_refused_on_all_ranks(void **state)
{
    batch b;

    open_batch(&b, *state, 1, 3);
    for (size_t samples = 0; samples <= 1; samples++) {
        b.shape.samples = fsdp_rank(*state) == fsdp_size(*state) - 1 ? samples : 0;
        assert_int_equal(FSDP_ERR_ARG, forward(*state, &b));
        assert_non_null(strstr(fsdp_last_error(*state), samples == 0 ? "have 0 elements" : "have 1 elements"));
        assert_true(b.running_mean[0] == 5.0F);
    }
    close_batch(&b);
}

/* Each on the last rank only; every rank gets the error, and the context is still good. */
static void bad_arguments_on_one_rank_fail_on_every_rank(void **state)
{
    static const struct {
        double      eps, momentum;
        size_t      samples, channels;
        int         lacks_weight, lacks_saved;
        const char *word;
    } bad[] = {
        {0.0, 0.1, 3, 3, 0, 0, "eps is 0"},
        {(double)NAN, 0.1, 3, 3, 0, 0, "eps is"},
        {EPS, 1.5, 3, 3, 0, 0, "momentum is 1.5"},
        {EPS, 0.1, 3, 0, 0, 0, "0 channels"},
        {EPS, 0.1, 3, 3, 1, 0, "`weight` is NULL"},
        {EPS, 0.1, 3, 3, 0, 1, "`saved` is NULL"},
        {EPS, 0.1, SIZE_MAX / 2, 3, 0, 0, "more bytes than memory"},
    };

    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        const int               guilty  = fsdp_rank(*state) == fsdp_size(*state) - 1;
        fsdp_batch_norm_options options = OPTIONS;
        batch                   b;

        open_batch(&b, *state, 0, 0);
        if (guilty) {
            options          = (fsdp_batch_norm_options){sizeof options, bad[k].eps, bad[k].momentum};
            b.shape.samples  = bad[k].samples;
            b.shape.channels = bad[k].channels;
        }
        assert_int_equal(FSDP_ERR_ARG,
                         fsdp_batch_norm_forward(*state, &b.shape, &options, b.x,
                                                 guilty && bad[k].lacks_weight ? NULL : b.weight, b.bias, &b.running,
                                                 b.y, guilty && bad[k].lacks_saved ? NULL : &b.saved));
        assert_non_null(strstr(fsdp_last_error(*state), bad[k].word));
        assert_true(b.running_mean[0] == 5.0F);
        close_batch(&b);
        open_batch(&b, *state, 0, 0);
        assert_int_equal(FSDP_OK, forward(*state, &b));
        close_batch(&b);
    }
}

static void bad_arguments_of_the_backward_pass_fail_on_every_rank(void **state)
{
    const int guilty = fsdp_rank(*state) == 0;
    batch     b;

    open_batch(&b, *state, 0, 0);
    assert_int_equal(FSDP_OK, forward(*state, &b));
    assert_int_equal(FSDP_ERR_ARG, fsdp_batch_norm_backward(*state, &b.shape, b.x, b.weight, &b.saved,
                                                            guilty ? NULL : b.dy, b.dx, b.d_weight, b.d_bias));
    assert_non_null(strstr(fsdp_last_error(*state), "`dy` is NULL"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_batch_norm_backward(*state, &b.shape, b.x, b.weight, guilty ? NULL : &b.saved,
                                                            b.dy, b.dx, b.d_weight, b.d_bias));
    assert_true(b.d_weight[0] == 10.0F);
    assert_int_equal(FSDP_OK, backward(*state, &b));
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_batch_norm_forward(NULL, &b.shape, &OPTIONS, b.x, b.weight, b.bias, NULL, b.y, &b.saved));
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_batch_norm_evaluate(*state, &b.shape, &OPTIONS, b.x, b.weight, b.bias, NULL, b.y));
    close_batch(&b);
}

static void ranks_that_disagree_are_told(void **state)
{
    fsdp_batch_norm_options options = OPTIONS;
    batch                   b;

    if (fsdp_size(*state) == 1) {
        skip();
    }
    open_batch(&b, *state, 0, 0);
    options.eps = fsdp_rank(*state) == 1 ? 1e-3 : EPS;
    assert_int_equal(FSDP_ERR_MISMATCH, fsdp_batch_norm_forward(*state, &b.shape, &options, b.x, b.weight, b.bias,
                                                                &b.running, b.y, &b.saved));
    assert_non_null(strstr(fsdp_last_error(*state), "eps 0.001"));
    b.shape.channels = fsdp_rank(*state) == 1 ? 2 : 3;
    assert_int_equal(FSDP_ERR_MISMATCH, forward(*state, &b));
    assert_non_null(strstr(fsdp_last_error(*state), "2 channels"));
    b.shape.channels = 3;
    assert_int_equal(FSDP_OK, forward(*state, &b));
    close_batch(&b);
}

static void nothing_is_held_after_a_pass(void **state)
{
    fsdp_memory before, after;
    batch       b;

    open_batch(&b, *state, 0, 0);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(*state, &before));
    assert_int_equal(FSDP_OK, forward(*state, &b));
    assert_int_equal(FSDP_OK, backward(*state, &b));
    b.shape.channels = 0;
    assert_int_equal(FSDP_ERR_ARG, forward(*state, &b));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(*state, &after));
    assert_int_equal(before.current[FSDP_MEMORY_BOOKKEEPING], after.current[FSDP_MEMORY_BOOKKEEPING]);
    close_batch(&b);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_equals_a_serial_recomputation_of_the_whole_batch),
        cmocka_unit_test(gradients_equal_central_differences_of_the_whole_batch),
        cmocka_unit_test(the_gradient_may_be_replaced_in_place),
        cmocka_unit_test(two_runs_give_the_same_bits),
        cmocka_unit_test(constant_channels_become_their_bias),
        cmocka_unit_test(running_statistics_are_optional_and_serve_evaluation),
        cmocka_unit_test(a_batch_of_one_element_is_refused_on_all_ranks),
        cmocka_unit_test(bad_arguments_on_one_rank_fail_on_every_rank),
        cmocka_unit_test(bad_arguments_of_the_backward_pass_fail_on_every_rank),
        cmocka_unit_test(ranks_that_disagree_are_told),
        cmocka_unit_test(nothing_is_held_after_a_pass),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
