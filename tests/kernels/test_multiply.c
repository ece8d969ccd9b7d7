/** @file Products of matrices: the reference against long double, and the tables bitwise against the reference. */
#include "kernel_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, D, EXPECTED, WORK_FENCE = 64 };

typedef struct shape {
    size_t rows, columns, depth;
} shape;

/* Around the sides of tiles (6 and 12 rows; 4 to 32 columns), of blocks (96 rows; 256 or 512 columns) and of the depth of 256. */
static const shape shapes[] = {
    {0, 0, 0},   {1, 1, 1},    {1, 1, 0},   {3, 5, 0},   {0, 4, 3},    {4, 0, 3},    {2, 3, 4},
    {5, 7, 11},  {6, 16, 3},   {7, 17, 3},  {6, 8, 256}, {7, 9, 257},  {12, 32, 2},  {13, 33, 1},
    {17, 4, 9},  {31, 29, 37}, {96, 16, 5}, {97, 31, 4}, {3, 5, 511},  {2, 3, 513},  {4, 3, 769},
    {5, 256, 3}, {3, 257, 7},  {2, 513, 2}, {2, 512, 3}, {61, 67, 19}, {64, 64, 64},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static const double factors[][2] = {{1, 0}, {1, 1}, {-0.7, 0}, {2.0315, -4.775}, {0, 3}, {0, 0}};
enum { N_FACTORS = sizeof factors / sizeof factors[0] };

static const fsdp_dtype types[] = {FSDP_F32, FSDP_F64};

/* Which of A and B are transposed: bits 0 and 1. */
enum { N_TRANSPOSED = 4 };

static void *work;

/** Between -1 and 1. */
static void fill_with_numbers(void *x, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        const double value = ldexp((double)(int64_t)random_bits(), -63);

        if (dtype == FSDP_F64) {
            memcpy((char *)x + i * sizeof value, &value, sizeof value);
        } else {
            const float narrow = (float)value;
            memcpy((char *)x + i * sizeof narrow, &narrow, sizeof narrow);
        }
    }
}

static long double at(const void *x, size_t i, fsdp_dtype dtype)
{
    double f64;
    float  f32;

    if (dtype == FSDP_F64) {
        memcpy(&f64, (const char *)x + i * sizeof f64, sizeof f64);
        return (long double)f64;
    }
    memcpy(&f32, (const char *)x + i * sizeof f32, sizeof f32);
    return (long double)f32;
}

static fsdpi_product product_of(shape s, fsdp_dtype dtype, int transposed, const double factor[2], ptrdiff_t offset)
{
    const size_t  bytes = element_bytes(dtype);
    fsdpi_product p     = {.dtype   = dtype,
                           .rows    = s.rows,
                           .columns = s.columns,
                           .depth   = s.depth,
                           .alpha   = factor[0],
                           .beta    = factor[1],
                           .a       = fenced_array(A, s.rows * s.depth * bytes, offset),
                           .b       = fenced_array(B, s.depth * s.columns * bytes, offset),
                           .c       = fenced_array(C, s.rows * s.columns * bytes, offset),
                           .d       = fenced_array(D, s.rows * s.columns * bytes, offset),
                           .work    = work};

    p.a_row    = (transposed & 1) != 0 ? 1 : s.depth;
    p.a_column = (transposed & 1) != 0 ? s.rows : 1;
    p.b_row    = (transposed & 2) != 0 ? 1 : s.columns;
    p.b_column = (transposed & 2) != 0 ? s.depth : 1;
    return p;
}

typedef void (*fill)(void *x, size_t count, fsdp_dtype dtype);

static void fill_operands(const fsdpi_product *p, fill values)
{
    values((void *)p->a, p->rows * p->depth, p->dtype);
    values((void *)p->b, p->depth * p->columns, p->dtype);
    values((void *)p->d, p->rows * p->columns, p->dtype);
}

/** By a table and by the reference. */
static void assert_as_the_reference(const fsdpi_kernels *kernels, const fsdpi_product *p)
{
    const size_t  count    = p->rows * p->columns;
    fsdpi_product expected = *p;

    expected.c = fenced_array(EXPECTED, count * element_bytes(p->dtype), 0);
    memset(work, 0x7f, FSDPI_PRODUCT_WORK_BYTES + WORK_FENCE);
    fsdpi_kernels_scalar.multiply(&expected);
    kernels->multiply(p);
    assert_same_or_both_nan(expected.c, p->c, count, p->dtype, kernels->name);
    assert_fences_stand();
    for (size_t i = 0; i < WORK_FENCE; i++) {
        assert_int_equal(0x7f, ((const unsigned char *)work)[FSDPI_PRODUCT_WORK_BYTES + i]);
    }
}

static void any_shape_of_any_values_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < N_SHAPES * 2 * N_TRANSPOSED; i++) {
            const shape   s = shapes[i % N_SHAPES];
            fsdpi_product p =
                product_of(s, types[i / N_SHAPES % 2], (int)(i / N_SHAPES / 2), factors[i % N_FACTORS], 0);

            fill_operands(&p, fill_with_any_values);
            assert_as_the_reference(tables_under_test[t], &p);
            fill_operands(&p, fill_with_numbers);
            assert_as_the_reference(tables_under_test[t], &p);
        }
    }
}

static void any_factors_equal_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < 2 * (size_t)N_FACTORS; i++) {
            fsdpi_product p = product_of((shape){9, types[i / N_FACTORS] == FSDP_F32 ? 27 : 13, 300},
                                         types[i / N_FACTORS], 0, factors[i % N_FACTORS], 0);

            fill_operands(&p, fill_with_numbers);
            assert_as_the_reference(tables_under_test[t], &p);
        }
    }
}

static void nothing_behind_the_end_is_touched_at_any_alignment(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < 2 * (size_t)N_TRANSPOSED; i++) {
            const fsdp_dtype dtype = types[i % 2];

            for (ptrdiff_t offset = AT_END; offset < 5; offset++) {
                const ptrdiff_t bytes = offset == AT_END ? AT_END : offset * (ptrdiff_t)units_of(dtype)[0];
                fsdpi_product   p     = product_of((shape){13, 21, 7}, dtype, (int)(i / 2), factors[3], bytes);

                fill_operands(&p, fill_with_any_values);
                assert_as_the_reference(tables_under_test[t], &p);
            }
        }
    }
}

static void d_may_be_c(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < 2; i++) {
            fsdpi_product p = product_of((shape){14, 18, 31}, types[i], 0, factors[3], 0);

            fill_operands(&p, fill_with_numbers);
            memcpy(p.c, p.d, p.rows * p.columns * element_bytes(p.dtype));
            const fsdpi_product apart = p;
            p.d                       = p.c;
            fsdpi_product expected    = apart;
            expected.c                = fenced_array(EXPECTED, p.rows * p.columns * element_bytes(p.dtype), 0);
            fsdpi_kernels_scalar.multiply(&expected);
            tables_under_test[t]->multiply(&p);
            assert_memory_equal(expected.c, p.c, p.rows * p.columns * element_bytes(p.dtype));
        }
    }
}

/** X X^T, and S S for a symmetric S with S as D: whole and by half. */
static void assert_symmetric_as_whole(const fsdpi_kernels *kernels, size_t n, size_t depth, fsdp_dtype dtype)
{
    const size_t  bytes = element_bytes(dtype);
    fsdpi_product p     = product_of((shape){n, n, depth}, dtype, 0, factors[0], 0);

    fill_operands(&p, fill_with_numbers);
    p.b = p.a, p.b_row = 1, p.b_column = depth;
    assert_as_the_reference(kernels, &p);
    p.symmetric = true;
    assert_as_the_reference(kernels, &p);

    void *square = fenced_array(B, n * n * bytes, 0);
    if (n > 0) {
        memcpy(square, p.c, n * n * bytes);
    }
    p = (fsdpi_product){.dtype    = dtype,
                        .rows     = n,
                        .columns  = n,
                        .depth    = n,
                        .alpha    = 2.0315,
                        .beta     = -4.775,
                        .a        = square,
                        .a_row    = n,
                        .a_column = 1,
                        .b        = square,
                        .b_row    = n,
                        .b_column = 1,
                        .d        = square,
                        .c        = p.c,
                        .work     = work};
    assert_as_the_reference(kernels, &p);
    void *whole = fenced_array(A, n * n * bytes, 0);
    if (n > 0) {
        memcpy(whole, p.c, n * n * bytes);
    }
    p.symmetric = true;
    assert_as_the_reference(kernels, &p);
    assert_same_or_both_nan(whole, p.c, n * n, dtype, "half of it, mirrored");
}

static void a_symmetric_product_by_half_is_the_whole_one(void **state)
{
    static const size_t sides[] = {0, 1, 2, 5, 6, 13, 17, 32, 33, 60};

    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
            assert_symmetric_as_whole(tables_under_test[t], sides[i], 41, FSDP_F32);
            assert_symmetric_as_whole(tables_under_test[t], sides[i], 41, FSDP_F64);
        }
    }
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        assert_symmetric_as_whole(tables_under_test[t], 60, 0, FSDP_F32);
    }
}

/* Larger than any block in both directions, of which a fenced array has no room. */
static void a_product_of_several_blocks_equals_the_reference(void **state)
{
    enum { ROWS = 211, COLUMNS = 1039, DEPTH = 531 };
    static double a[ROWS * DEPTH], b[DEPTH * COLUMNS], c[ROWS * COLUMNS], expected[ROWS * COLUMNS];

    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < 2; i++) {
            fsdpi_product p = {.dtype    = types[i],
                               .rows     = ROWS,
                               .columns  = COLUMNS,
                               .depth    = DEPTH,
                               .alpha    = 0.3,
                               .a        = a,
                               .a_row    = DEPTH,
                               .a_column = 1,
                               .b        = b,
                               .b_row    = COLUMNS,
                               .b_column = 1,
                               .c        = expected,
                               .work     = work};

            fill_with_numbers(a, (size_t)ROWS * DEPTH, types[i]);
            fill_with_numbers(b, (size_t)DEPTH * COLUMNS, types[i]);
            fsdpi_kernels_scalar.multiply(&p);
            p.c = c;
            tables_under_test[t]->multiply(&p);
            assert_memory_equal(expected, c, (size_t)ROWS * COLUMNS * element_bytes(types[i]));
        }
    }
}

/* The reference against what is known: each rounding is of at most the sum of magnitudes. */
static void the_reference_is_near_its_definition_in_long_double(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES * 2 * N_TRANSPOSED; i++) {
        const fsdp_dtype  dtype = types[i / N_SHAPES % 2];
        const long double unit  = dtype == FSDP_F64 ? 0x1p-53L : 0x1p-24L;
        fsdpi_product p = product_of(shapes[i % N_SHAPES], dtype, (int)(i / N_SHAPES / 2), factors[i % N_FACTORS], 0);

        fill_operands(&p, fill_with_numbers);
        fsdpi_kernels_scalar.multiply(&p);
        for (size_t at_c = 0; at_c < p.rows * p.columns; at_c++) {
            const size_t row = at_c / p.columns, column = at_c % p.columns;
            long double  sum = 0, size = 0, alpha = (long double)p.alpha, beta = (long double)p.beta;

            for (size_t k = 0; k < p.depth; k++) {
                const long double term =
                    at(p.a, row * p.a_row + k * p.a_column, dtype) * at(p.b, k * p.b_row + column * p.b_column, dtype);

                sum += term, size += fabsl(term);
            }
            const long double base  = beta == 0 ? 0 : beta * at(p.d, at_c, dtype);
            const long double bound = ((long double)p.depth + 8) * unit * (fabsl(alpha) * size + fabsl(base));

            if (!(fabsl(at(p.c, at_c, dtype) - (alpha * sum + base)) <= bound)) {
                fail_msg("element %zu of shape %zu is off by more than %Lg", at_c, i % N_SHAPES, bound);
            }
        }
    }
}

static void d_is_not_read_without_a_factor(void **state)
{
    const float   a = 3, b = 5;
    float         c = NAN;
    fsdpi_product p = {.dtype    = FSDP_F32,
                       .rows     = 1,
                       .columns  = 1,
                       .depth    = 1,
                       .alpha    = 2,
                       .a        = &a,
                       .a_row    = 1,
                       .a_column = 1,
                       .b        = &b,
                       .b_row    = 1,
                       .b_column = 1,
                       .d        = NULL,
                       .c        = &c,
                       .work     = work};

    (void)state;
    fsdpi_kernels_scalar.multiply(&p);
    assert_true(c == 30);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        c = NAN;
        tables_under_test[t]->multiply(&p);
        assert_true(c == 30);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_of_any_values_equals_the_reference),
        cmocka_unit_test(any_factors_equal_the_reference),
        cmocka_unit_test(nothing_behind_the_end_is_touched_at_any_alignment),
        cmocka_unit_test(d_may_be_c),
        cmocka_unit_test(a_symmetric_product_by_half_is_the_whole_one),
        cmocka_unit_test(a_product_of_several_blocks_equals_the_reference),
        cmocka_unit_test(the_reference_is_near_its_definition_in_long_double),
        cmocka_unit_test(d_is_not_read_without_a_factor),
    };

    work             = malloc(FSDPI_PRODUCT_WORK_BYTES + WORK_FENCE);
    const int failed = kernel_test_main(argc, argv, tests);
    free(work);
    return failed;
}
