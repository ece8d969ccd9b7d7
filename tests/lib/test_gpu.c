/*
 * A double of the HIP runtime, linked before the real one: one GPU, whose memory is one array. It stands in for the GPU
 * that the machine does not have; what is tested is what the library does with the runtime's answers.
 */
#include <hip/hip_runtime_api.h>
#include <string.h>

#include "fsdp/collectives.h"
#include "fsdp/device.h"
#include "lib/context/context.h"
#include "lib/device/gpu.h"
#include "tests/support/mpi_test.h"

static int32_t gpu_memory[64];
static int     errors_left_behind;
static int     n_gpus = 1;

hipError_t hipGetDeviceCount(int *count)
{
    *count = n_gpus;
    return n_gpus > 0 ? hipSuccess : hipErrorNoDevice;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
    const char *byte = ptr, *first = (const char *)gpu_memory;

    if (byte < first || byte >= first + sizeof gpu_memory) {
        errors_left_behind = 1;
        return hipErrorInvalidValue;
    }
    memset(attributes, 0, sizeof *attributes);
    attributes->memoryType = hipMemoryTypeDevice;
    return hipSuccess;
}

hipError_t hipGetLastError(void)
{
    errors_left_behind = 0;
    return hipSuccess;
}

/* The setting that leaves GPUs alone. */
static void gpu_memory_is_refused_by_name_on_every_rank(void **state)
{
    fsdp_context *ctx;
    fsdp_config   config;
    int32_t       value = 1, sum = 0;

    (void)state;
    fsdp_config_init(&config);
    config.device = FSDP_DEVICE_HOST;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(-1, fsdp_device(ctx));
    void *out = fsdp_rank(ctx) == fsdp_size(ctx) - 1 ? &gpu_memory[3] : &sum;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_allreduce(ctx, &value, out, 1, FSDP_I32, FSDP_SUM));
    assert_non_null(strstr(fsdp_last_error(ctx), "uses no GPU (FSDP_DEVICE is 'host'); pass host memory"));
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, &value, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(fsdp_size(ctx), sum);
    assert_int_equal(0, errors_left_behind);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_node_without_gpus_works_as_a_build_without_hip(void **state)
{
    fsdp_context *ctx;
    int32_t       sum = 1;

    (void)state;
    n_gpus = 0;
    assert_int_equal(0, fsdpi_gpu_count());
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(0, ctx->n_gpus);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(fsdp_size(ctx), sum);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpu_memory_is_refused_by_name_on_every_rank),
        cmocka_unit_test(a_node_without_gpus_works_as_a_build_without_hip),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
