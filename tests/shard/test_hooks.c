/** @file Gradient hooks against serial recomputation: what they send, what they keep, and how they fail. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/random.h"
#include "lib/device/memory.h"
#include "shard/hooks/hook.h"
#include "tests/shard/failing_memory.h"
#include "tests/support/mpi_test.h"

/* Two matrices, one of them of three dimensions, a vector, a scalar, and padding behind them. */
enum { ROWS = 40, COLUMNS = 36, VECTOR = 37, PLANES = 8, PLANE = 35, BLOCK = 256, COUNT = 1792, MOST_RANKS = 8 };
enum { W = 0, B = W + ROWS * COLUMNS, C = B + VECTOR, S = C + PLANES * PLANE, END = S + 1 };

static const fsdp_gradient_tensor TENSORS[] = {
    {.name = "w", .offset = W, .n_dims = 2, .shape = {ROWS, COLUMNS}},
    {.name = "b", .offset = B, .n_dims = 1, .shape = {VECTOR}},
    {.name = "c", .offset = C, .n_dims = 3, .shape = {PLANES, 5, 7}},
    {.name = "s", .offset = S},
};

static const fsdpi_purpose PURPOSE = {.name = "test_hooks", .label = "u"};

static fsdp_gradient gradient_over(fsdp_context *ctx, float *values)
{
    return (fsdp_gradient){.unit      = "u",
                           .values    = values,
                           .count     = COUNT,
                           .n_tensors = sizeof TENSORS / sizeof *TENSORS,
                           .tensors   = TENSORS,
                           .ranks     = fsdp_size(ctx)};
}

/* What rank `rank` contributes in step `step`. */
static float element(int rank, int step, size_t i)
{
    return i < END ? (float)fsdp_random_normal((uint64_t)rank, (uint64_t)step, i) : 0.0F;
}

static void contribute(float *values, int rank, int step)
{
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = element(rank, step, i);
    }
}

static double mean_of(int size, int step, size_t i)
{
    double sum = 0.0;

    for (int r = 0; r < size; r++) {
        sum += (double)element(r, step, i);
    }
    return sum / size;
}

/* As fsdp_allreduce() is specified. */
static float f32_mean_of(int size, int step, size_t i)
{
    float sum = element(0, step, i);

    for (int r = 1; r < size; r++) {
        sum += element(r, step, i);
    }
    return sum / (float)size;
}

static fsdp_status average(fsdp_hook *hook, fsdp_context *ctx, float *values)
{
    const fsdp_gradient gradient = gradient_over(ctx, values);

    return fsdpi_hook_allreduce(hook, ctx, &PURPOSE, &gradient);
}

static void assert_same_everywhere(const float *values)
{
    float first[COUNT];

    memcpy(first, values, sizeof first);
    assert_int_equal(MPI_SUCCESS, MPI_Bcast(first, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD));
    assert_memory_equal(first, values, sizeof first);
}

/* One reduction of step `step`, whose result all ranks hold. */
static void run_step(fsdp_hook *hook, fsdp_context *ctx, int step, float *values)
{
    contribute(values, fsdp_rank(ctx), step);
    if (average(hook, ctx, values) != FSDP_OK) {
        fail_msg("step %d: %s", step, fsdp_last_error(ctx));
    }
    assert_same_everywhere(values);
}

enum { BF16, F16, INT8, POWER, N_METHODS };

static fsdp_hook *make(fsdp_context *ctx, int method)
{
    const fsdp_power_sgd_options power = {.size = sizeof power, .rank = 2, .min_ratio = 1.5, .seed = 99};
    fsdp_hook                   *hook  = NULL;
    fsdp_status                  status;

    switch (method) {
    case BF16:
    case F16:
        status = fsdp_hook_half(ctx, method == BF16 ? FSDP_BF16 : FSDP_F16, &hook);
        break;
    case INT8:
        status = fsdp_hook_int8(ctx, NULL, &hook);
        break;
    default:
        status = fsdp_hook_power_sgd(ctx, &power, &hook);
        break;
    }
    assert_int_equal(FSDP_OK, status);
    assert_non_null(hook);
    return hook;
}

/* ---- without a method -------------------------------------------------------------------------------------------- */

static void no_hook_is_a_plain_average(void **state)
{
    fsdp_context *ctx = *state;
    float         values[COUNT];

    run_step(NULL, ctx, 0, values);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(values[i] == f32_mean_of(fsdp_size(ctx), 0, i));
    }
}

static void one_rank_keeps_its_gradient(void **state)
{
    fsdp_context *alone;
    float         values[COUNT], own[COUNT];

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &alone));
    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook *hook = make(alone, method);
        uint64_t   sent, uncompressed;

        contribute(values, 3, 0);
        memcpy(own, values, sizeof own);
        assert_int_equal(FSDP_OK, average(hook, alone, values));
        assert_memory_equal(own, values, sizeof own);
        assert_int_equal(FSDP_OK, fsdp_hook_bytes(hook, &sent, &uncompressed));
        assert_int_equal(0, sent);
        assert_int_equal(0, uncompressed);
        fsdp_hook_destroy(hook);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(alone));
}

/* ---- half -------------------------------------------------------------------------------------------------------- */

/* To `bits` significant bits, of which the last is never worth less than `quantum`; to nearest even. */
static float rounded(double x, int bits, double quantum)
{
    int exponent;

    (void)frexp(x, &exponent);
    const double last = fmax(ldexp(1.0, exponent - bits), quantum);
    return (float)(nearbyint(x / last) * last);
}

static void half_is_the_rounded_mean_of_rounded_values(void **state)
{
    fsdp_context *ctx = *state;
    float         values[COUNT];

    for (int method = BF16; method <= F16 && fsdp_size(ctx) > 1; method++) {
        const int    bits    = method == BF16 ? 8 : 11;
        const double quantum = method == BF16 ? 0x1p-133 : 0x1p-24;
        fsdp_hook   *hook    = make(ctx, method);

        run_step(hook, ctx, method, values);
        for (size_t i = 0; i < COUNT; i++) {
            float sum = 0.0F;
            for (int r = 0; r < fsdp_size(ctx); r++) {
                sum += rounded((double)element(r, method, i), bits, quantum);
            }
            assert_true(values[i] == rounded((double)(sum / (float)fsdp_size(ctx)), bits, quantum));
        }
        fsdp_hook_destroy(hook);
    }
}

/* ---- int8 -------------------------------------------------------------------------------------------------------- */

/* Half a step of each of the two roundings, for each block, from the gradients alone. */
static void int8_bounds(int size, int step, double *bounds)
{
    for (size_t begin = 0; begin < COUNT; begin += BLOCK) {
        double steps = 0.0, largest_mean = 0.0;

        for (int r = 0; r < size; r++) {
            double largest = 0.0;
            for (size_t i = begin; i < begin + BLOCK; i++) {
                largest = fmax(largest, fabs((double)element(r, step, i)));
            }
            steps += largest / 127.0 / size;
        }
        for (size_t i = begin; i < begin + BLOCK; i++) {
            largest_mean = fmax(largest_mean, fabs(mean_of(size, step, i)));
        }
        bounds[begin / BLOCK] = 1.001 * (steps / 2.0 + (largest_mean + steps / 2.0) / 254.0);
    }
}

static void int8_is_off_by_half_a_step_of_each_rounding(void **state)
{
    fsdp_context *ctx  = *state;
    const int     size = fsdp_size(ctx);
    fsdp_hook    *hook = make(ctx, INT8);
    double        bounds[COUNT / BLOCK];
    float         values[COUNT];
    size_t        n_off = 0;

    int8_bounds(size, 0, bounds);
    run_step(hook, ctx, 0, values);
    for (size_t i = 0; i < COUNT; i++) {
        const double error = fabs((double)values[i] - mean_of(size, 0, i));
        assert_true(error <= bounds[i / BLOCK]);
        n_off += error > 0.1 * bounds[i / BLOCK];
    }
    assert_true(size == 1 || n_off > COUNT / 4); /* it is quantised indeed */
    fsdp_hook_destroy(hook);
}

/* The error of the running mean falls as 1 / steps, and not only as far as a rounding goes. */
static void int8_loses_nothing_over_many_steps(void **state)
{
    enum { STEPS = 50 };
    fsdp_context *ctx        = *state;
    fsdp_hook    *hook       = make(ctx, INT8);
    double        sum[COUNT] = {0.0};
    double        bounds[COUNT / BLOCK];
    float         values[COUNT];

    int8_bounds(fsdp_size(ctx), 0, bounds);
    for (int t = 0; t < STEPS; t++) {
        run_step(hook, ctx, 0, values);
        for (size_t i = 0; i < COUNT; i++) {
            sum[i] += (double)values[i];
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        const double error = fabs(sum[i] / STEPS - mean_of(fsdp_size(ctx), 0, i));
        assert_true(error <= 1.05 * bounds[i / BLOCK] / STEPS + 1e-7);
    }
    fsdp_hook_destroy(hook);
}

static void a_unit_too_small_for_int8_is_averaged_as_it_is(void **state)
{
    fsdp_context *ctx       = *state;
    fsdp_hook    *hook      = make(ctx, INT8);
    const int     sum       = fsdp_size(ctx) * (fsdp_size(ctx) - 1) / 2; /* of the ranks */
    float         values[3] = {0.0F, 0.1F, -1e-3F};
    fsdp_gradient gradient  = {.unit = "small", .values = values, .ranks = fsdp_size(ctx)};

    for (gradient.count = 0; gradient.count < 3; gradient.count++) {
        values[0] = (float)fsdp_rank(ctx);
        assert_int_equal(FSDP_OK, fsdpi_hook_allreduce(hook, ctx, &PURPOSE, &gradient));
        assert_true(gradient.count == 0 || values[0] == (float)sum / (float)fsdp_size(ctx));
    }
    assert_int_equal(0, fsdpi_hook_needs(hook, &gradient).state);
    fsdp_hook_destroy(hook);
}

/* ---- PowerSGD ---------------------------------------------------------------------------------------------------- */

/* A serial PowerSGD in f64 on one matrix, for all ranks at once. */
typedef struct serial_power {
    size_t rows, columns, rank, offset;
    double rest[MOST_RANKS][ROWS * COLUMNS];
    double right[2 * COLUMNS];
    double result[ROWS * COLUMNS];
} serial_power;

static void start_serially(serial_power *p, const char *name, size_t rank, uint64_t seed)
{
    p->rank = rank;
    for (size_t i = 0; i < rank * p->columns; i++) {
        p->right[i] = fsdp_random_normal(seed, fsdp_random_stream(name), i);
    }
}

static void orthonormalise_serially(double *left, size_t n, size_t rank)
{
    for (size_t k = 0; k < rank; k++) {
        double norm = 0.0;
        for (size_t j = 0; j < k; j++) {
            double product = 0.0;
            for (size_t i = 0; i < n; i++) {
                product += left[k * n + i] * left[j * n + i];
            }
            for (size_t i = 0; i < n; i++) {
                left[k * n + i] -= product * left[j * n + i];
            }
        }
        for (size_t i = 0; i < n; i++) {
            norm += left[k * n + i] * left[k * n + i];
        }
        for (size_t i = 0; i < n; i++) {
            left[k * n + i] /= sqrt(norm);
        }
    }
}

static void reduce_serially(serial_power *p, int size, int step)
{
    const size_t n = p->rows, m = p->columns;
    double       left[2 * ROWS] = {0.0}, right[2 * COLUMNS] = {0.0};

    for (int w = 0; w < size; w++) {
        for (size_t i = 0; i < n * m; i++) {
            p->rest[w][i] += (double)element(w, step, p->offset + i);
            for (size_t k = 0; k < p->rank; k++) {
                left[k * n + i / m] += p->rest[w][i] * p->right[k * m + i % m] / size;
            }
        }
    }
    orthonormalise_serially(left, n, p->rank);
    memset(p->result, 0, sizeof p->result);
    for (int w = 0; w < size; w++) {
        for (size_t k = 0; k < p->rank; k++) {
            for (size_t j = 0; j < m; j++) {
                double own = 0.0;
                for (size_t i = 0; i < n; i++) {
                    own += p->rest[w][i * m + j] * left[k * n + i];
                }
                right[k * m + j] += own / size;
                for (size_t i = 0; i < n; i++) {
                    p->rest[w][i * m + j] -= left[k * n + i] * own;
                    p->result[i * m + j] += left[k * n + i] * own / size;
                }
            }
        }
    }
    memcpy(p->right, right, sizeof right);
}

static void assert_matrix_close(const serial_power *p, const float *values)
{
    double error = 0.0, norm = 0.0;

    for (size_t i = 0; i < p->rows * p->columns; i++) {
        const double difference = (double)values[p->offset + i] - p->result[i];
        error += difference * difference;
        norm += p->result[i] * p->result[i];
    }
    if (sqrt(error) > 2e-4 * sqrt(norm)) {
        fail_msg("off by %g of its norm", sqrt(error / norm));
    }
}

/* Six steps: right only if the residuals and the right factors go on from step to step. */
static void power_sgd_is_what_the_paper_says(void **state)
{
    static serial_power w, c;
    fsdp_context       *ctx  = *state;
    fsdp_hook          *hook = make(ctx, POWER);
    float               values[COUNT];

    w = (serial_power){.rows = ROWS, .columns = COLUMNS, .offset = W};
    c = (serial_power){.rows = PLANES, .columns = PLANE, .offset = C};
    start_serially(&w, "w", 2, 99);
    start_serially(&c, "c", 2, 99);
    for (int step = 0; step < 6 && fsdp_size(ctx) > 1; step++) {
        run_step(hook, ctx, step, values);
        reduce_serially(&w, fsdp_size(ctx), step);
        reduce_serially(&c, fsdp_size(ctx), step);
        assert_matrix_close(&w, values);
        assert_matrix_close(&c, values);
    }
    fsdp_hook_destroy(hook);
}

static void what_power_sgd_does_not_compress_is_the_plain_average(void **state)
{
    fsdp_context *ctx  = *state;
    fsdp_hook    *hook = make(ctx, POWER);
    float         values[COUNT];

    run_step(hook, ctx, 5, values);
    for (size_t i = B; i < COUNT; i++) {
        const int is_matrix = i >= C && i < S;
        assert_true(is_matrix || values[i] == f32_mean_of(fsdp_size(ctx), 5, i));
    }
    fsdp_hook_destroy(hook);
}

/* Rank 2 by construction, with another weight on each rank; in step 3 of rank 1, in step 4 zero. */
static double low_rank_element(int rank, int step, size_t i, size_t j)
{
    double sum = 0.0;

    for (size_t k = 0; k < (step == 3 ? 1 : 2) && step != 4; k++) {
        sum += (1.0 + rank) * fsdp_random_normal(7, (uint64_t)step, k * ROWS + i) * fsdp_random_normal(8, k, j);
    }
    return sum;
}

static void power_sgd_is_exact_for_matrices_of_its_rank(void **state)
{
    fsdp_context *ctx    = *state;
    const double  weight = (fsdp_size(ctx) - 1) / 2.0; /* the mean rank */
    fsdp_hook    *hook   = make(ctx, POWER);
    float         values[COUNT];

    for (int step = 0; step < 8; step++) {
        contribute(values, fsdp_rank(ctx), step);
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            values[W + i] = (float)low_rank_element(fsdp_rank(ctx), step, i / COLUMNS, i % COLUMNS);
        }
        assert_int_equal(FSDP_OK, average(hook, ctx, values));
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            const double mean = low_rank_element(0, step, i / COLUMNS, i % COLUMNS) * (1.0 + weight);
            assert_true(fabs((double)values[W + i] - mean) < 1e-4 * (1.0 + weight));
        }
    }
    fsdp_hook_destroy(hook);
}

/* ---- all methods with memory ------------------------------------------------------------------------------------- */

/* After steps without a gradient the sum of all results is the sum of all gradients: what was left out has come after. */
static void what_is_left_out_comes_later(void **state)
{
    enum { STEPS = 5, EMPTY = 60 };
    fsdp_context *ctx = *state;
    float         values[COUNT];

    for (int method = INT8; method <= POWER; method++) {
        fsdp_hook *hook       = make(ctx, method);
        double     sum[COUNT] = {0.0};

        for (int t = 0; t < STEPS + EMPTY; t++) {
            contribute(values, fsdp_rank(ctx), t);
            if (t >= STEPS) {
                memset(values, 0, sizeof values);
            }
            assert_int_equal(FSDP_OK, average(hook, ctx, values));
            for (size_t i = 0; i < COUNT; i++) {
                sum[i] += (double)values[i];
            }
        }
        for (size_t i = 0; i < COUNT; i++) {
            double expected = 0.0;
            for (int t = 0; t < STEPS; t++) {
                expected += mean_of(fsdp_size(ctx), t, i);
            }
            assert_true(fabs(sum[i] - expected) < 2e-5);
        }
        fsdp_hook_destroy(hook);
    }
}

/* A bad step shows on all ranks, and the steps after it are bitwise those of a run without it. */
static void what_is_not_finite_shows_and_leaves_no_trace(void **state)
{
    static const float  bad[]    = {NAN, INFINITY, -INFINITY};
    static const size_t places[] = {W + 7, B + 1, C + 3, S};
    fsdp_context       *ctx      = *state;
    float               values[COUNT], undisturbed[COUNT];

    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook *with = make(ctx, method), *without = make(ctx, method);

        for (int step = 0; step < 12; step++) {
            const size_t place = places[step % 4];

            contribute(values, fsdp_rank(ctx), 100 + step);
            values[place] = fsdp_rank(ctx) == fsdp_size(ctx) - 1 ? bad[step % 3] : values[place];
            assert_int_equal(FSDP_OK, average(with, ctx, values));
            assert_false(isfinite(values[place]) != 0);

            run_step(with, ctx, step, values);
            run_step(without, ctx, step, undisturbed);
            assert_memory_equal(undisturbed, values, sizeof values);
        }
        fsdp_hook_destroy(with);
        fsdp_hook_destroy(without);
    }
}

static void units_and_hooks_do_not_share_state(void **state)
{
    fsdp_context *ctx = *state;
    float         expected[COUNT], values[COUNT];

    for (int method = INT8; method <= POWER; method++) {
        fsdp_hook *hook = make(ctx, method), *reference = make(ctx, method);

        for (int step = 0; step < 3; step++) {
            fsdp_gradient other = gradient_over(ctx, values);

            other.unit = "other";
            contribute(values, fsdp_rank(ctx), 50 + step);
            assert_int_equal(FSDP_OK, fsdpi_hook_allreduce(hook, ctx, &PURPOSE, &other));
            run_step(hook, ctx, step, values);
            run_step(reference, ctx, step, expected);
            assert_memory_equal(expected, values, sizeof values);
        }
        fsdp_hook_destroy(hook);
        fsdp_hook_destroy(reference);
    }
}

/* As HYBRID_SHARD would: state and memory belong to the hook's context, ranks to another. */
static void a_hook_serves_another_context_than_its_own(void **state)
{
    fsdp_context *ctx = *state, *part;
    MPI_Comm      comm;
    float         values[COUNT];

    assert_int_equal(MPI_SUCCESS, MPI_Comm_split(MPI_COMM_WORLD, fsdp_rank(ctx) % 2, 0, &comm));
    assert_int_equal(FSDP_OK, fsdp_init(comm, NULL, &part));
    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook *hook = make(ctx, method), *reference = make(part, method);
        float      expected[COUNT];

        for (int step = 0; step < 2; step++) {
            contribute(values, fsdp_rank(ctx), step);
            contribute(expected, fsdp_rank(ctx), step);
            assert_int_equal(FSDP_OK, average(hook, part, values));
            assert_int_equal(FSDP_OK, average(reference, part, expected));
            assert_memory_equal(expected, values, sizeof values);
        }
        fsdp_hook_destroy(reference);
        fsdp_hook_destroy(hook);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(part));
    assert_int_equal(MPI_SUCCESS, MPI_Comm_free(&comm));
}

/* int8 adds in rank order wherever the ranks are; the others round once more on the way, the same for all ranks. */
static void results_are_the_same_on_all_nodes(void **state)
{
    fsdp_context *ctx = *state, *nodes;
    fsdp_config   config;
    float         values[COUNT], expected[COUNT];

    fsdp_config_init(&config);
    config.node_size = 2;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &nodes));
    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook *hook = make(nodes, method), *reference = make(ctx, method);

        for (int step = 0; step < 3; step++) {
            run_step(hook, nodes, step, values);
            run_step(reference, ctx, step, expected);
            assert_true(method != INT8 || memcmp(expected, values, sizeof values) == 0);
            for (size_t i = 0; i < COUNT; i++) {
                assert_true(fabsf(values[i] - expected[i]) < 0.05F);
            }
        }
        fsdp_hook_destroy(hook);
        fsdp_hook_destroy(reference);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(nodes));
}

/* ---- bytes and memory -------------------------------------------------------------------------------------------- */

static uint64_t ring_bytes(uint64_t bytes, uint64_t n)
{
    return (2 * (n - 1) * bytes + n - 1) / n;
}

static void bytes_are_counted_as_documented(void **state)
{
    fsdp_context  *ctx        = *state;
    const uint64_t n          = (uint64_t)fsdp_size(ctx);
    const uint64_t part       = (COUNT + n * BLOCK - 1) / (n * BLOCK) * BLOCK;
    const uint64_t factors[2] = {2 * (ROWS + PLANES), 2 * (COLUMNS + PLANE)};
    const uint64_t plain      = COUNT - ROWS * COLUMNS - PLANES * PLANE;
    const uint64_t expected[] = {ring_bytes(2 * COUNT, n), ring_bytes(2 * COUNT, n),
                                 2 * (n - 1) * (part + part / BLOCK * 4),
                                 ring_bytes(4 * (factors[0] + plain), n) + ring_bytes(4 * factors[1], n)};
    float          values[COUNT];

    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook *hook = make(ctx, method);
        uint64_t   sent = 1, uncompressed = 1;

        for (uint64_t step = 0; step < 3; step++) {
            assert_int_equal(FSDP_OK, fsdp_hook_bytes(hook, &sent, &uncompressed));
            assert_int_equal(step * expected[method], sent);
            assert_int_equal(step * ring_bytes(4 * COUNT, n), uncompressed);
            run_step(hook, ctx, (int)step, values);
        }
        assert_int_equal(FSDP_ERR_ARG, fsdp_hook_bytes(hook, NULL, &sent));
        assert_int_equal(FSDP_ERR_ARG, fsdp_hook_bytes(NULL, &sent, &uncompressed));
        fsdp_hook_destroy(hook);
    }
}

static void memory_is_what_was_announced(void **state)
{
    fsdp_context       *ctx = *state;
    float               values[COUNT];
    const fsdp_gradient gradient = gradient_over(ctx, values);

    for (int method = 0; method < N_METHODS; method++) {
        fsdp_memory before, after;

        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &before));
        fsdp_hook            *hook = make(ctx, method);
        const fsdpi_hook_need need = fsdpi_hook_needs(hook, &gradient);
        assert_int_equal(FSDP_OK, fsdpi_hook_prepare(hook, ctx, &gradient));
        for (int step = 0; step < 2; step++) {
            assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &after));
            assert_int_equal(fsdpi_hook_bookkeeping() + need.bookkeeping,
                             after.current[FSDP_MEMORY_BOOKKEEPING] - before.current[FSDP_MEMORY_BOOKKEEPING]);
            assert_int_equal(need.state, after.current[FSDP_MEMORY_GRADIENTS] - before.current[FSDP_MEMORY_GRADIENTS]);
            assert_int_equal(need.scratch, after.current[FSDP_MEMORY_STAGING] - before.current[FSDP_MEMORY_STAGING]);
            run_step(hook, ctx, step, values);
        }
        fsdp_hook_destroy(hook);
        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &after));
        assert_int_equal(before.current_total, after.current_total);
    }
    const fsdpi_hook_need none = fsdpi_hook_needs(NULL, &gradient);
    assert_int_equal(0, none.bookkeeping + none.state + none.scratch);
}

/* Each allocation fails in turn, on the last rank: the same error on all, and the next attempt succeeds. */
static void every_allocation_may_fail(void **state)
{
    fsdp_context *ctx    = *state;
    fsdpi_device  device = failing_device();
    float         values[COUNT];

    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook  *hook;
        fsdp_status status = FSDP_ERR_MEMORY;
        int         k      = 0;
        fsdp_memory memory_before, memory_after;

        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory_before));
        hook = make(ctx, method);
        for (; status != FSDP_OK; k++) {
            contribute(values, fsdp_rank(ctx), 0);
            allocations_left = fsdp_rank(ctx) == fsdp_size(ctx) - 1 ? k : ENOUGH_ALLOCATIONS;
            ctx->device      = &device;
            status           = average(hook, ctx, values);
            ctx->device      = &fsdpi_device_host;
            assert_true(status == FSDP_OK || status == FSDP_ERR_MEMORY);
        }
        assert_true(fsdp_size(ctx) == 1 || k > (method < INT8 ? 1 : 3));
        run_step(hook, ctx, 1, values);
        fsdp_hook_destroy(hook);
        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory_after));
        assert_int_equal(memory_before.current_total, memory_after.current_total);
    }
    for (int k = 0; k < 2; k++) {
        fsdp_hook *hook  = (fsdp_hook *)ctx;
        allocations_left = fsdp_rank(ctx) == fsdp_size(ctx) - 1 ? k : ENOUGH_ALLOCATIONS;
        ctx->device      = &device;
        assert_int_equal(k == 0 ? FSDP_ERR_MEMORY : FSDP_OK, fsdp_hook_half(ctx, FSDP_BF16, &hook));
        ctx->device = &fsdpi_device_host;
        assert_int_equal(k, hook != NULL);
        fsdp_hook_destroy(hook);
    }
}

/* ---- the program's own ------------------------------------------------------------------------------------------- */

typedef struct calls {
    int         before, after;
    fsdp_status fail_before, fail_after;
} calls;

static fsdp_status before(void *state, const fsdp_gradient *gradient)
{
    calls *c = state;

    assert_int_equal(c->before, c->after);
    assert_string_equal("u", gradient->unit);
    assert_string_equal("c", gradient->tensors[2].name);
    c->before++;
    for (size_t i = 0; i < gradient->count; i++) {
        gradient->values[i] *= 2.0F;
    }
    return c->fail_before;
}

static fsdp_status after(void *state, const fsdp_gradient *gradient)
{
    calls *c = state;

    c->after++;
    gradient->values[B] += 1.0F;
    return c->fail_after;
}

static void callbacks_stand_around_the_average(void **state)
{
    fsdp_context             *ctx       = *state;
    calls                     c         = {0};
    const fsdp_hook_callbacks callbacks = {.size = sizeof callbacks, .before = before, .after = after, .state = &c};
    fsdp_hook                *hook;
    float                     values[COUNT];

    assert_int_equal(FSDP_OK, fsdp_hook_custom(ctx, &callbacks, &hook));
    for (int step = 0; step < 3; step++) {
        run_step(hook, ctx, step, values);
        assert_int_equal(step + 1, c.before);
        assert_int_equal(step + 1, c.after);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(values[i] == 2.0F * f32_mean_of(fsdp_size(ctx), step, i) + (i == B ? 1.0F : 0.0F));
        }
    }
    fsdp_hook_destroy(hook);
}

static void a_callback_that_fails_on_one_rank_fails_on_all(void **state)
{
    fsdp_context             *ctx       = *state;
    const int                 last      = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    calls                     c         = {0};
    const fsdp_hook_callbacks callbacks = {.size = sizeof callbacks, .before = before, .after = after, .state = &c};
    fsdp_hook                *hook;
    float                     values[COUNT];

    assert_int_equal(FSDP_OK, fsdp_hook_custom(ctx, &callbacks, &hook));
    c.fail_before = last ? FSDP_ERR_UNSUPPORTED : FSDP_OK;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, average(hook, ctx, values));
    assert_says(ctx, "before() returned 7, FSDP_ERR_UNSUPPORTED, for unit 'u'");
    c = (calls){.fail_after = last ? (fsdp_status)-3 : FSDP_OK};
    assert_int_equal(FSDP_ERR_ARG, average(hook, ctx, values));
    assert_says(ctx, "after() returned -3");
    c = (calls){0};
    run_step(hook, ctx, 0, values);
    fsdp_hook_destroy(hook);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Makes a hook with arguments that are wrong on the last rank, and with ones that differ there. */
static fsdp_status make_badly(fsdp_context *ctx, int which, int bad, fsdp_hook **hook)
{
    const size_t                 size8 = sizeof(fsdp_int8_options), size = sizeof(fsdp_power_sgd_options);
    const fsdp_int8_options      int8[]  = {{size8, 0}, {size8, 65537}, {size8, 128}};
    const fsdp_power_sgd_options power[] = {
        {size, 0, 2.0, 0}, {size, 4, 0.5, 0}, {size, 4, NAN, 0}, {size, 3, 2.0, 0}, {size, 4, 2.0, 1}};
    const fsdp_hook_callbacks none = {.size = sizeof none}, one = {.size = sizeof one, .before = before},
                              both = {.size = sizeof both, .before = before, .after = after};

    switch (which) {
    case 0:
        return fsdp_hook_half(ctx, bad ? FSDP_F32 : FSDP_BF16, hook);
    case 1:
        return fsdp_hook_half(ctx, bad ? (fsdp_dtype)77 : FSDP_BF16, hook);
    case 2:
    case 3:
        return fsdp_hook_int8(ctx, bad ? &int8[which - 2] : NULL, hook);
    case 4:
    case 5:
    case 6:
        return fsdp_hook_power_sgd(ctx, bad ? &power[which - 4] : NULL, hook);
    case 7:
        return fsdp_hook_custom(ctx, bad ? NULL : &both, hook);
    case 8:
        return fsdp_hook_custom(ctx, bad ? &none : &both, hook);
    case 9:
        return fsdp_hook_int8(ctx, NULL, bad ? NULL : hook);
    case 10:
        return fsdp_hook_half(ctx, bad ? FSDP_F16 : FSDP_BF16, hook);
    case 11:
        return fsdp_hook_int8(ctx, bad ? &int8[2] : NULL, hook);
    case 12:
    case 13:
        return fsdp_hook_power_sgd(ctx, bad ? &power[which - 9] : NULL, hook);
    default:
        return fsdp_hook_custom(ctx, bad ? &one : &both, hook);
    }
}

static void bad_options_on_one_rank_fail_on_all(void **state)
{
    static const char *const words[] = {"f32; use FSDP_BF16",
                                        "element type 77",
                                        "block is 0",
                                        "block is 65537",
                                        "rank is 0",
                                        "min_ratio is 0.5",
                                        "min_ratio is nan",
                                        "there is no callback",
                                        "there is no callback",
                                        "place for the hook is NULL"};
    enum { N_WRONG = sizeof words / sizeof *words, N_DIFFERENT = 5 };
    fsdp_context *ctx  = *state;
    const int     last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    float         values[COUNT];

    for (int which = 0; which < N_WRONG + (fsdp_size(ctx) > 1 ? N_DIFFERENT : 0); which++) {
        fsdp_hook *hook = (fsdp_hook *)ctx;

        assert_int_equal(which < N_WRONG ? FSDP_ERR_ARG : FSDP_ERR_MISMATCH, make_badly(ctx, which, last, &hook));
        assert_true(hook == NULL || (which == N_WRONG - 1 && last));
        assert_says(ctx, which < N_WRONG ? words[which] : "rank 0 calls fsdp_hook_");
        run_step(NULL, ctx, 0, values);
    }
    fsdp_hook *hook = NULL;
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_half(NULL, FSDP_BF16, &hook));
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_int8(NULL, NULL, &hook));
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_power_sgd(NULL, NULL, &hook));
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_custom(NULL, NULL, &hook));
    fsdp_hook_destroy(NULL);
}

/* What one rank brings along, or finds, goes to all; the steps after it are those of a run without it. */
static void a_failure_on_one_rank_is_that_of_all_and_leaves_no_trace(void **state)
{
    fsdp_context *ctx  = *state;
    const int     last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    float         values[COUNT], undisturbed[COUNT];

    for (int method = 0; method < N_METHODS; method++) {
        fsdp_hook *with = make(ctx, method), *without = make(ctx, method);

        for (int step = 0; step < 3; step++) {
            const fsdp_gradient gradient = gradient_over(ctx, values);
            fsdpi_purpose       purpose  = PURPOSE;

            contribute(values, fsdp_rank(ctx), 70);
            purpose.status = last ? fsdpi_record(ctx, FSDP_ERR_STATE, "no pass is open") : FSDP_OK;
            assert_int_equal(FSDP_ERR_STATE, fsdpi_hook_allreduce(with, ctx, &purpose, last ? NULL : &gradient));
            assert_says(ctx, "no pass is open");
            run_step(with, ctx, step, values);
            run_step(without, ctx, step, undisturbed);
            assert_memory_equal(undisturbed, values, sizeof values);
        }
        fsdp_hook_destroy(with);
        fsdp_hook_destroy(without);
    }
}

static void a_unit_known_with_other_tensors_is_refused(void **state)
{
    fsdp_context *ctx = *state;
    float         values[COUNT];

    for (int method = INT8; method <= POWER && fsdp_size(ctx) > 1; method++) {
        fsdp_hook    *hook     = make(ctx, method);
        fsdp_gradient gradient = gradient_over(ctx, values);

        run_step(hook, ctx, 0, values);
        gradient.count = END;
        assert_int_equal(FSDP_ERR_STATE, fsdpi_hook_allreduce(hook, ctx, &PURPOSE, &gradient));
        assert_says(ctx, "unit 'u' is known with other tensors");
        run_step(hook, ctx, 1, values);
        fsdp_hook_destroy(hook);
    }
}

static void finalize_releases_what_is_left(void **state)
{
    fsdp_context *ctx;
    float         values[COUNT];

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    run_step(make(ctx, POWER), ctx, 0, values);
    assert_int_equal(FSDP_ERR_LEAK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_hook_is_a_plain_average),
        cmocka_unit_test(one_rank_keeps_its_gradient),
        cmocka_unit_test(half_is_the_rounded_mean_of_rounded_values),
        cmocka_unit_test(int8_is_off_by_half_a_step_of_each_rounding),
        cmocka_unit_test(int8_loses_nothing_over_many_steps),
        cmocka_unit_test(a_unit_too_small_for_int8_is_averaged_as_it_is),
        cmocka_unit_test(power_sgd_is_what_the_paper_says),
        cmocka_unit_test(what_power_sgd_does_not_compress_is_the_plain_average),
        cmocka_unit_test(power_sgd_is_exact_for_matrices_of_its_rank),
        cmocka_unit_test(what_is_left_out_comes_later),
        cmocka_unit_test(what_is_not_finite_shows_and_leaves_no_trace),
        cmocka_unit_test(units_and_hooks_do_not_share_state),
        cmocka_unit_test(a_hook_serves_another_context_than_its_own),
        cmocka_unit_test(results_are_the_same_on_all_nodes),
        cmocka_unit_test(bytes_are_counted_as_documented),
        cmocka_unit_test(memory_is_what_was_announced),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(callbacks_stand_around_the_average),
        cmocka_unit_test(a_callback_that_fails_on_one_rank_fails_on_all),
        cmocka_unit_test(bad_options_on_one_rank_fail_on_all),
        cmocka_unit_test(a_failure_on_one_rank_is_that_of_all_and_leaves_no_trace),
        cmocka_unit_test(a_unit_known_with_other_tensors_is_refused),
        cmocka_unit_test(finalize_releases_what_is_left),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
