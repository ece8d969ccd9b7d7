/** @file The reduction: the reference against what is known exactly, and the tables against the reference. */
#include "kernel_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/host/half.h"
#include "kernels/host/walk.h"

enum { MAX_IN = 8, OUT = MAX_IN, EXPECTED = MAX_IN + 1 };

static const size_t n_ins[] = {1, 2, 3, 5, MAX_IN};

static const void *in[MAX_IN];

/** Inputs of any values, each at another offset of `unit` BYTES; 0: at the end of their memory instead. */
static void make_inputs(size_t n_in, size_t count, fsdp_dtype dtype, size_t offset, size_t unit)
{
    size_t bytes = element_bytes(dtype);

    for (size_t r = 0; r < n_in; r++) {
        size_t shift = (offset + 3 * r) % 17 * unit;
        void  *x     = fenced_array(r, count * bytes, unit == 0 ? AT_END : (ptrdiff_t)shift);

        fill_with_any_values(x, count, dtype);
        in[r] = x;
    }
}

static const void *reference(size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    void *out = fenced_array(EXPECTED, count * element_bytes(dtype), 0);

    fsdpi_kernels_scalar.reduce(out, in, n_in, count, dtype, op, n_in);
    return out;
}

static void check(const fsdpi_kernels *kernels, void *out, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    char        what[80];
    const void *expected = reference(n_in, count, dtype, op);

    snprintf(what, sizeof what, "%s, type %d, reduction %d, %zu inputs", kernels->name, dtype, op, n_in);
    kernels->reduce(out, in, n_in, count, dtype, op, n_in);
    assert_same_or_both_nan(expected, out, count, dtype, what);
    assert_fences_stand();
}

/** Calls `body` for each table, type, reduction and number of inputs; for two also as on processors that gain by asking ahead. */
static void for_each_case(void (*body)(const fsdpi_kernels *, size_t, fsdp_dtype, fsdp_redop))
{
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
            for (int op = 0; op < FSDP_N_REDOPS; op++) {
                for (size_t i = 0; i < sizeof n_ins / sizeof n_ins[0]; i++) {
                    for (int asks = 0; asks <= (n_ins[i] == 2); asks++) {
                        atomic_store(&fsdpi_lines_asked, asks != 0);
                        body(tables_under_test[t], n_ins[i], (fsdp_dtype)dtype, (fsdp_redop)op);
                    }
                }
            }
        }
    }
}

static void check_tails(const fsdpi_kernels *kernels, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
        make_inputs(n_in, *count, dtype, *count, element_bytes(dtype));
        check(kernels, fenced_array(OUT, *count * element_bytes(dtype), 0), n_in, *count, dtype, op);
    }
}

static void a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    for_each_case(check_tails);
}

/* Long enough for what comes to be asked for ahead. */
static void check_long(const fsdpi_kernels *kernels, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    const size_t count = MAX_ARRAY_BYTES / element_bytes(dtype);

    make_inputs(n_in, count, dtype, 1, element_bytes(dtype));
    check(kernels, fenced_array(OUT, count * element_bytes(dtype), 0), n_in, count, dtype, op);
}

static void long_vectors_equal_the_reference(void **state)
{
    (void)state;
    for_each_case(check_long);
}

static void check_offsets(const fsdpi_kernels *kernels, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    for (const size_t *unit = units_of(dtype); *unit != 0; unit++) {
        for (size_t offset = 0; offset <= 16; offset++) {
            make_inputs(n_in, 307, dtype, offset, *unit);
            check(kernels, fenced_array(OUT, 307 * element_bytes(dtype), (ptrdiff_t)(offset * *unit)), n_in, 307, dtype,
                  op);
        }
    }
}

static void any_alignment_equals_the_reference(void **state)
{
    (void)state;
    for_each_case(check_offsets);
}

static void check_in_place(const fsdpi_kernels *kernels, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    static const size_t counts[] = {1, 7, 64, 130, 521, 2053};

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t r = 0; r < n_in; r++) {
            make_inputs(n_in, counts[c], dtype, c, element_bytes(dtype));
            check(kernels, (void *)(uintptr_t)in[r], n_in, counts[c], dtype, op);
        }
    }
}

static void the_output_may_be_any_of_the_inputs(void **state)
{
    (void)state;
    for_each_case(check_in_place);
}

static void check_ends(const fsdpi_kernels *kernels, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    for (size_t count = 0; count <= 70; count++) {
        make_inputs(n_in, count, dtype, 0, 0);
        check(kernels, fenced_array(OUT, count * element_bytes(dtype), AT_END), n_in, count, dtype, op);
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for_each_case(check_ends);
}

static void the_inputs_are_left_alone(void **state)
{
    char before[64 * 8];

    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
            size_t bytes = 64 * element_bytes((fsdp_dtype)dtype);

            make_inputs(2, 64, (fsdp_dtype)dtype, 1, element_bytes((fsdp_dtype)dtype));
            memcpy(before, in[1], bytes);
            tables_under_test[t]->reduce(fenced_array(OUT, bytes, 0), in, 2, 64, (fsdp_dtype)dtype, FSDP_SUM, 2);
            assert_memory_equal(before, in[1], bytes);
        }
    }
}

/* The reference against what is known. */

static void store_integer(void *x, fsdp_dtype dtype, int value)
{
    switch (dtype) {
    case FSDP_F64:
        *(double *)x = value;
        break;
    case FSDP_F32:
        *(float *)x = (float)value;
        break;
    case FSDP_BF16:
        *(uint16_t *)x = fsdpi_f32_to_bf16((float)value);
        break;
    case FSDP_F16:
        *(uint16_t *)x = fsdpi_f32_to_f16((float)value);
        break;
    case FSDP_I64:
        *(int64_t *)x = value;
        break;
    case FSDP_I32:
        *(int32_t *)x = value;
        break;
    case FSDP_U8:
        *(uint8_t *)x = (uint8_t)value;
        break;
    }
}

static double load_number(const void *x, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return *(const double *)x;
    case FSDP_F32:
        return (double)*(const float *)x;
    case FSDP_BF16:
        return (double)fsdpi_bf16_to_f32(*(const uint16_t *)x);
    case FSDP_F16:
        return (double)fsdpi_f16_to_f32(*(const uint16_t *)x);
    case FSDP_I64:
        return (double)*(const int64_t *)x;
    case FSDP_I32:
        return (double)*(const int32_t *)x;
    case FSDP_U8:
        return (double)*(const uint8_t *)x;
    }
    return NAN;
}

/** The reference's result for one element. */
static double reduce_integers(const int *values, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    uint64_t    x[MAX_IN], out;
    const void *pointers[MAX_IN];

    for (size_t r = 0; r < n_in; r++) {
        store_integer(&x[r], dtype, values[r]);
        pointers[r] = &x[r];
    }
    fsdpi_kernels_scalar.reduce(&out, pointers, n_in, 1, dtype, op, n_in);
    return load_number(&out, dtype);
}

static void small_integers_are_exact_in_every_type(void **state)
{
    const int values[] = {7, 2, 9, 2};

    (void)state;
    for (int d = 0; d < FSDP_N_DTYPES; d++) {
        fsdp_dtype dtype = (fsdp_dtype)d;

        assert_true(reduce_integers(values, 4, dtype, FSDP_SUM) == 20);
        assert_true(reduce_integers(values, 4, dtype, FSDP_AVG) == 5);
        assert_true(reduce_integers(values, 4, dtype, FSDP_MIN) == 2);
        assert_true(reduce_integers(values, 4, dtype, FSDP_MAX) == 9);
        assert_true(reduce_integers(values, 4, dtype, FSDP_PROD) == 252);
    }
}

static void integer_averages_truncate_towards_zero(void **state)
{
    const int negative[] = {-3, -4}, positive[] = {3, 4};

    (void)state;
    assert_true(reduce_integers(negative, 2, FSDP_I32, FSDP_AVG) == -3);
    assert_true(reduce_integers(negative, 2, FSDP_I64, FSDP_AVG) == -3);
    assert_true(reduce_integers(positive, 2, FSDP_I32, FSDP_AVG) == 3);
    assert_true(reduce_integers(positive, 2, FSDP_U8, FSDP_AVG) == 3);
}

static void integers_wrap(void **state)
{
    const int largest[] = {INT32_MAX, 1}, squares[] = {65536, 65536, 65536, 65536}, bytes[] = {200, 100};

    (void)state;
    assert_true(reduce_integers(largest, 2, FSDP_I32, FSDP_SUM) == (double)INT32_MIN);
    assert_true(reduce_integers(largest, 2, FSDP_I32, FSDP_AVG) == (double)(INT32_MIN / 2));
    assert_true(reduce_integers(squares, 2, FSDP_I32, FSDP_PROD) == 0);
    assert_true(reduce_integers(squares, 4, FSDP_I64, FSDP_PROD) == 0);
    assert_true(reduce_integers(bytes, 2, FSDP_U8, FSDP_SUM) == 44);
    assert_true(reduce_integers(bytes, 2, FSDP_U8, FSDP_PROD) == 32);
}

static void floats_are_summed_in_rank_order(void **state)
{
    const int one_is_lost[] = {100000000, 1, -100000000}, one_stays[] = {100000000, -100000000, 1};

    (void)state;
    assert_true(reduce_integers(one_is_lost, 3, FSDP_F32, FSDP_SUM) == 0);
    assert_true(reduce_integers(one_stays, 3, FSDP_F32, FSDP_SUM) == 1);
}

static void halves_are_rounded_once(void **state)
{
    const int ones_on_256[] = {256, 1, 1}, ones_on_2048[] = {2048, 1, 1};

    (void)state;
    assert_true(reduce_integers(ones_on_256, 3, FSDP_BF16, FSDP_SUM) == 258);
    assert_true(reduce_integers(ones_on_2048, 3, FSDP_F16, FSDP_SUM) == 2050);
}

static void an_average_of_halves_does_not_overflow_in_between(void **state)
{
    const int largest[] = {65504, 65504, 65504};

    (void)state;
    assert_true(reduce_integers(largest, 3, FSDP_F16, FSDP_AVG) == 65504);
    assert_true(isinf(reduce_integers(largest, 3, FSDP_F16, FSDP_SUM)));
}

static void min_and_max_yield_nan_wherever_it_is(void **state)
{
    (void)state;
    for (size_t at = 0; at < 3; at++) {
        for (int op = FSDP_MIN; op <= FSDP_MAX; op++) {
            double      x[3]   = {1, 2, 3}, out64;
            float       y[3]   = {1, 2, 3}, out32;
            const void *wide[] = {&x[0], &x[1], &x[2]}, *narrow[] = {&y[0], &y[1], &y[2]};

            x[at] = NAN;
            y[at] = NAN;
            fsdpi_kernels_scalar.reduce(&out64, wide, 3, 1, FSDP_F64, (fsdp_redop)op, 3);
            fsdpi_kernels_scalar.reduce(&out32, narrow, 3, 1, FSDP_F32, (fsdp_redop)op, 3);
            assert_true(isnan(out64));
            assert_true(isnan(out32));
        }
    }
}

static void min_and_max_keep_the_first_of_equal_zeros(void **state)
{
    float       zeros[]          = {-0.0f, 0.0f}, out;
    const void *negative_first[] = {&zeros[0], &zeros[1]}, *positive_first[] = {&zeros[1], &zeros[0]};

    (void)state;
    for (int op = FSDP_MIN; op <= FSDP_MAX; op++) {
        fsdpi_kernels_scalar.reduce(&out, negative_first, 2, 1, FSDP_F32, (fsdp_redop)op, 2);
        assert_true(signbit(out));
        fsdpi_kernels_scalar.reduce(&out, positive_first, 2, 1, FSDP_F32, (fsdp_redop)op, 2);
        assert_false(signbit(out));
    }
}

static void more_inputs_than_a_byte_counts_are_averaged(void **state)
{
    static const uint8_t x[33] = {1};
    const void          *many[300];
    uint8_t              out[33], expected[33];

    (void)state;
    for (size_t r = 0; r < 300; r++) {
        many[r] = x;
    }
    fsdpi_kernels_scalar.reduce(expected, many, 300, 33, FSDP_U8, FSDP_AVG, 300);
    assert_int_equal(0, expected[0]); /* the sum wraps to 44, less than 300 */
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        tables_under_test[t]->reduce(out, many, 300, 33, FSDP_U8, FSDP_AVG, 300);
        assert_memory_equal(expected, out, sizeof out);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_integers_are_exact_in_every_type),
        cmocka_unit_test(integer_averages_truncate_towards_zero),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(floats_are_summed_in_rank_order),
        cmocka_unit_test(halves_are_rounded_once),
        cmocka_unit_test(an_average_of_halves_does_not_overflow_in_between),
        cmocka_unit_test(min_and_max_yield_nan_wherever_it_is),
        cmocka_unit_test(min_and_max_keep_the_first_of_equal_zeros),
        cmocka_unit_test(more_inputs_than_a_byte_counts_are_averaged),
        cmocka_unit_test(a_tail_of_any_length_equals_the_reference),
        cmocka_unit_test(long_vectors_equal_the_reference),
        cmocka_unit_test(any_alignment_equals_the_reference),
        cmocka_unit_test(the_output_may_be_any_of_the_inputs),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
        cmocka_unit_test(the_inputs_are_left_alone),
    };

    return kernel_test_main(argc, argv, tests);
}
