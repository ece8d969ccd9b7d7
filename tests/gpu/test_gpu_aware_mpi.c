/** @file When MPI is given GPU memory: as the setting says, as MPI says of itself on all ranks, and never else. */
#include <hip/hip_runtime_api.h>
#include <stdlib.h>

#include "fsdp/fsdp.h"
#include "tests/doubles/hip/job.h"
#include "tests/gpu/device_mpi.h"
#include "tests/support/mpi_test.h"

enum { COUNT = 1000 };

/* What Cray's MPI says of itself; with another kind of MPI than the library was built with, no context opens. */
#ifdef OPEN_MPI
#define CRAYS_TEXT "Open MPI in the place of: CRAY MPICH version 8.1.28"
#else
#define CRAYS_TEXT "MPI VERSION    : CRAY MPICH version 8.1.28"
#endif

/* A context of nodes of one rank, whose gathers go from GPU to GPU whatever the link seems to cost. Returns what it says of MPI. */
static int open_with(int aware, fsdp_context **ctx)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.gpu_aware_mpi  = aware;
    config.node_size      = 1;
    config.algo_allgather = FSDP_ALGO_RAILS;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, ctx));
    return fsdp_has_gpu_aware_mpi(*ctx);
}

static int asked_with(int aware)
{
    fsdp_context *ctx;
    const int     answer = open_with(aware, &ctx);

    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    return answer;
}

/* Messages of device memory in an allgather, whose result must be right. */
static size_t messages_with(int aware)
{
    const size_t  before = device_mpi_messages(), all = COUNT * (size_t)fsdp_test_size();
    const int     expected = aware == FSDP_GPU_AWARE_ON;
    int32_t      *memory, last;
    fsdp_context *ctx;

    assert_int_equal(expected, open_with(aware, &ctx));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_DEVICE, all * sizeof last, (void **)&memory));
    assert_int_equal(hipSuccess, hipMemsetAsync(memory, fsdp_test_rank() + 1, all * sizeof last, NULL));
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, FSDP_IN_PLACE, memory, COUNT, FSDP_I32));
    assert_int_equal(hipSuccess, hipMemcpy(&last, memory + all - 1, sizeof last, hipMemcpyDefault));
    assert_int_equal(0x01010101 * fsdp_test_size(), last);
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    return device_mpi_messages() - before;
}

static void mpi_is_given_device_memory_where_the_setting_says_so(void **state)
{
    (void)state;
    (void)setenv("FSDP_GPU_AWARE_MPI", "off", 1); /* for what stands in front of MPI; the contexts have their own */
    assert_int_equal(0, messages_with(FSDP_GPU_AWARE_OFF));
    assert_int_equal(0, messages_with(FSDP_GPU_AWARE_AUTO)); /* this MPI knows nothing of the double */
    (void)setenv("FSDP_GPU_AWARE_MPI", "on", 1);
    assert_true(messages_with(FSDP_GPU_AWARE_ON) > 0 || fsdp_test_size() == 1);
    (void)unsetenv("FSDP_GPU_AWARE_MPI");
}

static void the_kinds_of_memory_that_mpi_lists_count(void **state)
{
    static const struct {
        const char *kinds;
        int         aware;
    } LISTS[] = {{"system,mpi", 0},  {"system,mpi,rocm", 1}, {"rocm:device", 1},   {"rocm:host,system", 0},
                 {"cuda,system", 0}, {"rocmlike,mpi", 0},    {"mpi,rocm:host", 0}, {"mpi,rocm:host:device,mpi", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof LISTS / sizeof LISTS[0]; i++) {
        device_mpi_says(LISTS[i].kinds, NULL);
        assert_int_equal(LISTS[i].aware, asked_with(FSDP_GPU_AWARE_AUTO));
        assert_int_equal(0, asked_with(FSDP_GPU_AWARE_OFF));
    }
    device_mpi_says(NULL, NULL);
}

static void crays_variable_counts_under_crays_mpi_alone(void **state)
{
    (void)state;
    (void)setenv("MPICH_GPU_SUPPORT_ENABLED", "1", 1);
    assert_int_equal(0, asked_with(FSDP_GPU_AWARE_AUTO));
    device_mpi_says(NULL, CRAYS_TEXT);
    assert_int_equal(1, asked_with(FSDP_GPU_AWARE_AUTO));
    (void)setenv("MPICH_GPU_SUPPORT_ENABLED", "0", 1);
    assert_int_equal(0, asked_with(FSDP_GPU_AWARE_AUTO));
    (void)unsetenv("MPICH_GPU_SUPPORT_ENABLED");
    device_mpi_says(NULL, NULL);
}

static void one_rank_that_knows_nothing_decides_for_all(void **state)
{
    (void)state;
    device_mpi_says(fsdp_test_rank() == fsdp_test_size() - 1 ? NULL : "rocm", NULL);
    assert_int_equal(0, asked_with(FSDP_GPU_AWARE_AUTO));
    device_mpi_says(NULL, NULL);
}

static void without_a_context_there_is_nothing_to_give(void **state)
{
    (void)state;
    assert_int_equal(0, fsdp_has_gpu_aware_mpi(NULL));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpi_is_given_device_memory_where_the_setting_says_so),
        cmocka_unit_test(the_kinds_of_memory_that_mpi_lists_count),
        cmocka_unit_test(crays_variable_counts_under_crays_mpi_alone),
        cmocka_unit_test(one_rank_that_knows_nothing_decides_for_all),
        cmocka_unit_test(without_a_context_there_is_nothing_to_give),
    };

    return fsdp_test_main(argc, argv, tests, hip_double_join_job, NULL);
}
