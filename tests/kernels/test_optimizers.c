/** @file The steps of Adam, AdamW, Lion and SGD: the reference against long double, and the tables against the reference. */
#include "kernel_test.h"

#include <math.h>
#include <string.h>

enum { N_ARRAYS = 4, MAX_COUNT = 2053 };

static const fsdpi_adam adam_default = {.lr           = 1e-3f,
                                        .beta1        = 0.9f,
                                        .beta2        = 0.999f,
                                        .rest1        = 0.1f,
                                        .rest2        = 0.001f,
                                        .eps          = 1e-8f,
                                        .weight_decay = 0.01f,
                                        .correction1  = 0.1f,
                                        .correction2  = 0.001f};

static const fsdpi_lion lion_default = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.99f, .weight_decay = 0.1f};

/* Each combination of the switches of SGD. */
static const fsdpi_sgd sgd_variants[] = {
    {.lr = 0.1f},
    {.lr = 0.1f, .weight_decay = 0.01f},
    {.lr = 0.1f, .momentum = 0.9f, .first_step = 1},
    {.lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f},
    {.lr = 0.1f, .momentum = 0.9f, .nesterov = 1, .first_step = 1},
    {.lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .nesterov = 1},
};
enum { N_SGD_VARIANTS = sizeof sgd_variants / sizeof sgd_variants[0] };

typedef void (*step_of)(const fsdpi_kernels *kernels, float *const x[N_ARRAYS], size_t count, const void *c);

static void adam_of(const fsdpi_kernels *kernels, float *const x[N_ARRAYS], size_t count, const void *c)
{
    kernels->adam(x[0], x[1], x[2], x[3], count, c);
}

static void lion_of(const fsdpi_kernels *kernels, float *const x[N_ARRAYS], size_t count, const void *c)
{
    kernels->lion(x[0], x[1], x[2], count, c);
}

static void adamw_of(const fsdpi_kernels *kernels, float *const x[N_ARRAYS], size_t count, const void *c)
{
    kernels->adamw(x[0], x[1], x[2], x[3], count, c);
}

static void sgd_of(const fsdpi_kernels *kernels, float *const x[N_ARRAYS], size_t count, const void *c)
{
    kernels->sgd(x[0], x[1], x[2], count, c);
}

/** One step of `of` on any values by the reference and by a table: all arrays must be the same afterwards. */
static void check(step_of of, const void *c, const fsdpi_kernels *kernels, size_t count, ptrdiff_t offset)
{
    float *found[N_ARRAYS], *expected[N_ARRAYS];

    for (size_t i = 0; i < N_ARRAYS; i++) {
        ptrdiff_t shift = offset == AT_END ? AT_END : (offset + 3 * (ptrdiff_t)i) % 17 * (ptrdiff_t)sizeof(float);

        found[i]    = fenced_array(i, count * sizeof(float), shift);
        expected[i] = fenced_array(N_ARRAYS + i, count * sizeof(float), 0);
        fill_with_any_values(found[i], count, FSDP_F32);
        if (count > 0) {
            memcpy(expected[i], found[i], count * sizeof(float));
        }
    }
    of(&fsdpi_kernels_scalar, expected, count, c);
    of(kernels, found, count, c);
    for (size_t i = 0; i < N_ARRAYS; i++) {
        assert_same_or_both_nan(expected[i], found[i], count, FSDP_F32, kernels->name);
    }
    assert_fences_stand();
}

static void check_all_variants(const fsdpi_kernels *kernels, size_t count, ptrdiff_t offset)
{
    check(adam_of, &adam_default, kernels, count, offset);
    check(adamw_of, &adam_default, kernels, count, offset);
    check(lion_of, &lion_default, kernels, count, offset);
    for (size_t i = 0; i < N_SGD_VARIANTS; i++) {
        check(sgd_of, &sgd_variants[i], kernels, count, offset);
    }
}

static void a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
            check_all_variants(tables_under_test[t], *count, 0);
        }
    }
}

static void any_alignment_of_f32_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (ptrdiff_t offset = 0; offset <= 16; offset++) {
            check_all_variants(tables_under_test[t], 83, offset);
        }
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t count = 0; count <= 70; count++) {
            check_all_variants(tables_under_test[t], count, AT_END);
        }
    }
}

/** Values as they are in training, which no infinity or NaN hides. */
static float random_float(double size)
{
    return (float)(size * ldexp((double)(int64_t)random_bits(), -63));
}

static void train_and_compare(step_of of, const fsdpi_kernels *kernels)
{
    static float found[N_ARRAYS][MAX_COUNT], expected[N_ARRAYS][MAX_COUNT];
    float *const found_at[N_ARRAYS]    = {found[0], found[1], found[2], found[3]};
    float *const expected_at[N_ARRAYS] = {expected[0], expected[1], expected[2], expected[3]};
    fsdpi_adam   c                     = adam_default;

    memset(found, 0, sizeof found);
    memset(expected, 0, sizeof expected);
    for (int step = 1; step <= 20; step++) {
        c.correction1 = 1 - powf(c.beta1, (float)step);
        c.correction2 = 1 - powf(c.beta2, (float)step);
        for (size_t i = 0; i < MAX_COUNT; i++) {
            found[1][i] = expected[1][i] = random_float(0.1);
        }
        of(&fsdpi_kernels_scalar, expected_at, MAX_COUNT, of == lion_of ? (const void *)&lion_default : &c);
        of(kernels, found_at, MAX_COUNT, of == lion_of ? (const void *)&lion_default : &c);
        assert_memory_equal(expected, found, sizeof found);
    }
}

static void training_steps_in_a_row_equal_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        train_and_compare(adam_of, tables_under_test[t]);
        train_and_compare(adamw_of, tables_under_test[t]);
        train_and_compare(lion_of, tables_under_test[t]);
    }
}

/* The reference against what is known. */

/** Fails unless `found` is within some ulps of f32 of `expected`, where `size` is the largest number on the way. */
static void assert_close(long double expected, float found, long double size, const char *what)
{
    if (!(fabsl((long double)found - expected) <= 4 * 0x1p-24L * fabsl(size))) {
        fail_msg("%s is %a instead of %La", what, (double)found, expected);
    }
}

/* One step of random values. `decoupled`: AdamW, else Adam. */
static void check_adam_in_long_double(int decoupled)
{
    const fsdpi_adam *c  = &adam_default;
    long double       b1 = (long double)c->beta1, b2 = (long double)c->beta2;

    for (int i = 0; i < 10000; i++) {
        float       w = random_float(1), g = random_float(0.1), m = random_float(0.1), v = fabsf(random_float(0.01));
        long double pull   = (long double)c->weight_decay * (long double)w;
        long double d      = (long double)g + (decoupled ? 0 : pull);
        long double d_size = fabsl((long double)g) + (decoupled ? 0 : fabsl(pull));
        long double mean   = b1 * (long double)m + (long double)c->rest1 * d;
        long double square = b2 * (long double)v + (long double)c->rest2 * d * d;
        long double step   = (long double)c->lr * mean / (long double)c->correction1 /
                           (sqrtl(square / (long double)c->correction2) + (long double)c->eps);
        long double decayed     = (long double)w - (decoupled ? (long double)c->lr * pull : 0);
        long double mean_size   = fmaxl(fabsl((long double)m), d_size);
        long double square_size = fmaxl((long double)v, d_size * d_size);
        long double step_size   = mean == 0 ? 0 : step / mean * mean_size;
        long double weight_size = fabsl((long double)w) + fabsl(step_size);

        (decoupled ? fsdpi_kernels_scalar.adamw : fsdpi_kernels_scalar.adam)(&w, &g, &m, &v, 1, c);
        assert_close(mean, m, mean_size, "the mean");
        assert_close(square, v, square_size, "the mean square");
        assert_close(decayed - step, w, weight_size, "the weight");
    }
}

static void adam_and_adamw_are_near_their_definition_in_long_double(void **state)
{
    (void)state;
    check_adam_in_long_double(0);
    check_adam_in_long_double(1);
}

static void adam_feels_the_decay_as_a_gradient(void **state)
{
    fsdpi_adam  decayed = adam_default, plain = adam_default;
    float       w[2] = {5, 5}, m[2] = {0}, v[2] = {0};
    const float none = 0, pull = decayed.weight_decay * w[0];

    (void)state;
    plain.weight_decay = 0;
    fsdpi_kernels_scalar.adam(&w[0], &none, &m[0], &v[0], 1, &decayed);
    fsdpi_kernels_scalar.adam(&w[1], &pull, &m[1], &v[1], 1, &plain);
    assert_true(w[0] < 5 && w[0] == w[1] && m[0] == m[1] && v[0] == v[1]);
}

static long double sign_of(long double x)
{
    return (long double)(x > 0) - (long double)(x < 0);
}

static void lion_is_near_its_definition_in_long_double(void **state)
{
    const fsdpi_lion *c  = &lion_default;
    long double       b1 = (long double)c->beta1, b2 = (long double)c->beta2;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        float       w = random_float(1), g = random_float(1), m = random_float(0.1);
        long double direction = b1 * (long double)m + (1 - b1) * (long double)g;
        long double moment    = b2 * (long double)m + (1 - b2) * (long double)g;
        long double update    = sign_of(direction) + (long double)c->weight_decay * (long double)w;
        long double expected  = (long double)w - (long double)c->lr * update;

        if (fabsl(direction) < 0x1p-22L) { /* its sign is a matter of rounding */
            continue;
        }
        fsdpi_kernels_scalar.lion(&w, &g, &m, 1, c);
        assert_close(moment, m, 1, "the moment");
        assert_close(expected, w, 1, "the weight");
    }
}

static void lion_moves_by_the_learning_rate_whatever_the_gradient(void **state)
{
    const fsdpi_lion c   = {.lr = 0x1p-6f, .beta1 = 0.9f, .beta2 = 0.99f};
    float            w[] = {1, 1, 1, 1, 1}, g[] = {1e-30f, -1e-30f, 1e30f, 0.0f, NAN}, m[5] = {0};

    (void)state;
    fsdpi_kernels_scalar.lion(w, g, m, 5, &c);
    assert_true(w[0] == 1 - c.lr && w[1] == 1 + c.lr && w[2] == 1 - c.lr && w[3] == 1);
    assert_true(isnan(w[4])); /* what is not a number must not go unseen */
}

static void adamw_moves_by_the_learning_rate_where_the_gradient_is_constant(void **state)
{
    fsdpi_adam c = adam_default;
    float      w = 5, g = 0.02f, m = 0, v = 0;

    (void)state;
    c.weight_decay = 0;
    for (int step = 1; step <= 100; step++) {
        c.correction1 = (float)(1 - pow(0.9, step));
        c.correction2 = (float)(1 - pow(0.999, step));
        fsdpi_kernels_scalar.adamw(&w, &g, &m, &v, 1, &c);
        assert_true(fabs((double)w - (5 - step * (double)c.lr)) < 1e-3 * step * (double)c.lr);
    }
}

static void adamw_without_gradient_only_decays(void **state)
{
    fsdpi_adam c = adam_default;
    float      w = 5, g = 0, m = 0, v = 0;

    (void)state;
    for (int step = 1; step <= 100; step++) {
        fsdpi_kernels_scalar.adamw(&w, &g, &m, &v, 1, &c);
    }
    assert_true(fabs((double)w - 5 * pow(1 - (double)c.lr * (double)c.weight_decay, 100)) < 1e-4);
    assert_true(m == 0 && v == 0);
}

static void sgd_is_near_its_definition_in_long_double(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) {
        const fsdpi_sgd *c = &sgd_variants[i % N_SGD_VARIANTS];
        float            w = random_float(1), g = random_float(1), b = random_float(1);
        long double      mu       = (long double)c->momentum;
        long double      d        = (long double)g + (long double)c->weight_decay * (long double)w;
        long double      buffer   = c->first_step ? d : mu * (long double)b + d;
        long double      used     = c->momentum == 0 ? d : c->nesterov ? d + mu * buffer : buffer;
        long double      expected = (long double)w - (long double)c->lr * used;

        fsdpi_kernels_scalar.sgd(&w, &g, c->momentum == 0 ? NULL : &b, 1, c);
        assert_close(expected, w, 2, "the weight");
        if (c->momentum != 0) {
            assert_close(buffer, b, 2, "the momentum");
        }
    }
}

static void sgd_with_momentum_approaches_a_constant_speed(void **state)
{
    fsdpi_sgd c = {.lr = 0.1f, .momentum = 0.5f, .first_step = 1};
    float     w = 0, g = 1, b = NAN; /* the first step must not read it */

    (void)state;
    for (int step = 1; step <= 20; step++) {
        fsdpi_kernels_scalar.sgd(&w, &g, &b, 1, &c);
        c.first_step = 0;
        assert_true(fabs((double)b - 2 * (1 - pow(0.5, step))) < 1e-6);
    }
}

static void sgd_without_momentum_leaves_the_buffer_alone(void **state)
{
    float w[33] = {1}, g[33] = {1}, b[33];

    (void)state;
    for (size_t i = 0; i < 33; i++) {
        b[i] = 7;
    }
    fsdpi_kernels_scalar.sgd(w, g, b, 33, &sgd_variants[0]);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        tables_under_test[t]->sgd(w, g, b, 33, &sgd_variants[0]);
        tables_under_test[t]->sgd(w, g, NULL, 33, &sgd_variants[1]);
    }
    for (size_t i = 0; i < 33; i++) {
        assert_true(b[i] == 7);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_and_adamw_are_near_their_definition_in_long_double),
        cmocka_unit_test(adam_feels_the_decay_as_a_gradient),
        cmocka_unit_test(lion_is_near_its_definition_in_long_double),
        cmocka_unit_test(lion_moves_by_the_learning_rate_whatever_the_gradient),
        cmocka_unit_test(adamw_moves_by_the_learning_rate_where_the_gradient_is_constant),
        cmocka_unit_test(adamw_without_gradient_only_decays),
        cmocka_unit_test(sgd_is_near_its_definition_in_long_double),
        cmocka_unit_test(sgd_with_momentum_approaches_a_constant_speed),
        cmocka_unit_test(sgd_without_momentum_leaves_the_buffer_alone),
        cmocka_unit_test(a_tail_of_any_length_equals_the_reference),
        cmocka_unit_test(any_alignment_of_f32_equals_the_reference),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
        cmocka_unit_test(training_steps_in_a_row_equal_the_reference),
    };

    return kernel_test_main(argc, argv, tests);
}
