/** @file Sums of bf16 within a node are rounded once: how far they may be from the exact sum. */
#include <math.h>
#include <stdlib.h>

#include "fsdp/buffer.h"
#include "fsdp/random.h"
#include "kernels/kernels.h"
#include "tests/collectives/collective_test.h"

enum { COUNT = 4099 };

/* Of mixed sign and of magnitudes from 2^-8 to 2^8; the same bits for all who ask. */
static uint16_t element(int rank, size_t i)
{
    const int   exponent = (int)(fsdp_random_bits(7, (uint64_t)rank, i) % 17) - 8;
    const float value    = (float)ldexp(2 * fsdp_random_uniform(42, (uint64_t)rank, i) - 1, exponent);
    uint16_t    bits;

    fsdpi_kernels_scalar.cast(&bits, FSDP_BF16, &value, FSDP_F32, 1);
    return bits;
}

static double value_of(uint16_t bits)
{
    double value;

    fsdpi_kernels_scalar.cast(&value, FSDP_F64, &bits, FSDP_BF16, 1);
    return value;
}

/* Half a unit in the last of the 8 places of a bf16. */
static double half_ulp(double x)
{
    int exponent;

    (void)frexp(x, &exponent);
    return ldexp(0.5, exponent - 8);
}

/* Sums of eight such values are exact in f64. */
static void assert_close(const uint16_t *found, int size, size_t i)
{
    double exact = 0, magnitudes = 0;

    for (int r = 0; r < size; r++) {
        const double x = value_of(element(r, i));
        exact += x;
        magnitudes += fabs(x);
    }
    const double error = fabs(value_of(found[i]) - exact);
    const double bound = half_ulp(exact) + 8 * ldexp(1, -24) * magnitudes;
    if (!(error <= bound)) {
        fail_msg("element %zu: %.9g instead of %.17g, off by %.3g, more than %.3g", i, value_of(found[i]), exact, error,
                 bound);
    }
}

static fsdp_context *open_one_node(void)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size = 0;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static void fill(uint16_t *x, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = element(rank, i);
    }
}

static void check_allreduce(fsdp_context *ctx, uint16_t *in, uint16_t *out, size_t count)
{
    const int size = fsdp_size(ctx);

    fill(in, fsdp_rank(ctx), count);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, count, FSDP_BF16, FSDP_SUM));
    for (size_t i = 0; i < count; i++) {
        assert_close(out, size, i);
    }
}

static void check_reduce_scatter(fsdp_context *ctx, uint16_t *in, uint16_t *out, size_t count)
{
    const size_t size = (size_t)fsdp_size(ctx), rank = (size_t)fsdp_rank(ctx), each = count / size;

    fill(in, fsdp_rank(ctx), each * size);
    assert_int_equal(FSDP_OK, fsdp_reduce_scatter(ctx, in, out + rank * each, each, FSDP_BF16, FSDP_SUM));
    for (size_t i = 0; i < each; i++) {
        assert_close(out, (int)size, rank * each + i);
    }
}

static void check_counts(fsdp_context *ctx, uint16_t *in, uint16_t *out)
{
    static const size_t counts[] = {7, 100, 1009, COUNT};

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        check_allreduce(ctx, in, out, counts[c]);
        check_reduce_scatter(ctx, in, out, counts[c]);
    }
}

static void sums_in_symmetric_memory_are_close(void **state)
{
    fsdp_context *ctx = open_one_node();
    void         *in, *out;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, COUNT * sizeof(uint16_t), &in));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, COUNT * sizeof(uint16_t), &out));
    check_counts(ctx, in, out);
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, in));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, out));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void sums_in_user_memory_are_close(void **state)
{
    fsdp_context *ctx = open_one_node();
    uint16_t     *in = calloc(COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out);

    (void)state;
    assert_non_null(in);
    assert_non_null(out);
    check_counts(ctx, in, out);
    free(in);
    free(out);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_in_symmetric_memory_are_close),
        cmocka_unit_test(sums_in_user_memory_are_close),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
