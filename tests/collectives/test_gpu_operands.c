/* Reductions on a GPU of more operands than a kernel takes: on a made-up device, that reduces on the host as kernels do. */
#include <string.h>

#include "collectives/reach/mover.h"
#include "collectives/select/able.h"
#include "fsdp/algorithms.h"
#include "kernels/gpu.h"
#include "lib/context/context.h"
#include "tests/support/unit_test.h"

enum { MOST = 3 * FSDPI_GPU_OPERANDS, COUNT = 5 };

static int launches;

/* In the order of the operands, as kernels/hip/reduce.cpp does. */
static fsdp_status reduce_on_host(fsdpi_gpu_device *gpu, void *const *out, size_t n_out, const void *const *in,
                                  size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op, size_t divisor,
                                  fsdpi_gpu_stream stream)
{
    (void)gpu;
    (void)stream;
    assert_int_equal(FSDP_F32, dtype);
    assert_int_equal(1, n_out);
    assert_in_range(n_in, 1, FSDPI_GPU_OPERANDS);
    launches++;
    for (size_t i = 0; i < count; i++) {
        float all = ((const float *)in[0])[i];
        for (size_t k = 1; k < n_in; k++) {
            const float x = ((const float *)in[k])[i];
            all           = op == FSDP_MAX ? (x > all ? x : all) : all + x;
        }
        ((float *)out[0])[i] = op == FSDP_AVG ? all / (float)divisor : all;
    }
    return FSDP_OK;
}

static const fsdpi_gpu_ops OPS    = {.name = "made up", .reduce = reduce_on_host};
static fsdpi_gpu_device    device = {.ops = &OPS};
static fsdp_context        ctx;
static fsdpi_engine        engine = {.core = &ctx.core, .recorder = &ctx.recorder, .gpu = &ctx.gpu};

static fsdp_request request_of(fsdp_dtype dtype)
{
    ctx.config.log_level = FSDP_LOG_OFF;
    ctx.gpu.device       = &device;
    return (fsdp_request){.ctx    = &ctx,
                          .engine = &engine,
                          .flags  = FSDPI_FLAG_DEVICE | FSDPI_FLAG_SYMMETRIC,
                          .call   = {.name = "fsdp_allreduce", .dtype = dtype, .on_device = true, .has_op = true}};
}

/* Values of which sums are rounded at each step, so that another order would be seen. */
static float value_of(size_t operand, size_t i)
{
    return (float)(operand % 7 + 1) * 1.0e3f / (float)(i + operand % 11 + 3);
}

static void check(size_t n, fsdp_redop op)
{
    static float       in[MOST][COUNT];
    static const void *operands[MOST];
    float              result[COUNT], expected[COUNT];
    fsdp_request       request = request_of(FSDP_F32);

    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < COUNT; i++) {
            in[k][i] = value_of(k, i);
        }
        operands[k] = in[k];
    }
    for (size_t i = 0; i < COUNT; i++) { /* the reference: one after the other */
        expected[i] = in[0][i];
        for (size_t k = 1; k < n; k++) {
            expected[i] = op == FSDP_MAX ? (in[k][i] > expected[i] ? in[k][i] : expected[i]) : expected[i] + in[k][i];
        }
        expected[i] = op == FSDP_AVG ? expected[i] / (float)n : expected[i];
    }
    launches     = 0;
    ctx.operands = operands;
    fsdpi_device_mover.reduce(&request, result, n, COUNT, op, n);
    assert_int_equal(FSDP_OK, request.verdict.status);
    assert_memory_equal(expected, result, sizeof result);
    assert_int_equal(n <= FSDPI_GPU_OPERANDS ? 1 : 1 + (n - 2) / (FSDPI_GPU_OPERANDS - 1), launches);
}

static void more_operands_than_a_kernel_takes_have_the_bits_of_one_after_the_other(void **state)
{
    static const size_t N[] = {1, 2, 63, 64, 65, 126, 127, 128, 129, 190, 191, MOST};

    (void)state;
    for (size_t i = 0; i < sizeof N / sizeof N[0]; i++) {
        check(N[i], FSDP_SUM);
        check(N[i], FSDP_AVG);
        check(N[i], FSDP_MAX);
    }
}

/* They could not be rounded once. */
static void sixteen_bits_from_so_many_nodes_are_an_error_that_names_a_way_out(void **state)
{
    fsdp_request request = request_of(FSDP_BF16);
    float        result[COUNT];

    (void)state;
    fsdpi_device_mover.reduce(&request, result, FSDPI_GPU_OPERANDS + 1, COUNT, FSDP_SUM, 1);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, request.verdict.status);
    assert_non_null(strstr(request.verdict.text, "fsdp_buffer_alloc"));
}

static void and_do_not_go_through_staging_memory_where_the_rails_can_take_them(void **state)
{
    static const fsdp_dtype TYPES[] = {FSDP_F32, FSDP_BF16, FSDP_F16};

    (void)state;
    ctx.nodes.largest = 8;
    for (size_t t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        for (int nodes = FSDPI_GPU_OPERANDS; nodes <= FSDPI_GPU_OPERANDS + 1; nodes++) {
            const bool   leaves_out = nodes > FSDPI_GPU_OPERANDS && TYPES[t] != FSDP_F32;
            fsdp_request request    = request_of(TYPES[t]);

            ctx.nodes.count = nodes;
            assert_int_equal(!leaves_out, fsdpi_able(&request) >> FSDP_ALGO_STAGED & 1);
            assert_true((fsdpi_able(&request) >> FSDP_ALGO_RAILS & 1) != 0);
            request.flags = FSDPI_FLAG_DEVICE; /* private memory: there is no other way */
            assert_int_equal(1U << FSDP_ALGO_STAGED, fsdpi_able(&request));
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_operands_than_a_kernel_takes_have_the_bits_of_one_after_the_other),
        cmocka_unit_test(sixteen_bits_from_so_many_nodes_are_an_error_that_names_a_way_out),
        cmocka_unit_test(and_do_not_go_through_staging_memory_where_the_rails_can_take_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
