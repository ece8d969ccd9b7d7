/* Which GPU fsdp_init() selects, and when: on a record of this machine and a double of HIP, two_gpus.node. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/context.h"
#include "lib/device/gpu.h"
#include "tests/lib/topology/here.h"

static fsdp_status open_with(int bind, fsdp_context **ctx)
{
    const fsdp_config config = here_config(bind, here_record());

    return fsdp_init(MPI_COMM_WORLD, &config, ctx);
}

/* HIP's device 0 is on NUMA node 1, where thread 1 is. */
static void each_rank_has_the_gpu_beside_it(void **state)
{
    fsdp_context *ctx;
    char          text[16];

    (void)state;
    if (!here_has_both_threads()) {
        skip();
    }
    assert_int_equal(FSDP_OK, open_with(FSDP_BIND_AUTO, &ctx));
    const int       device = fsdpi_gpu_selected();
    const fsdp_mask now    = here_mask_now();
    (void)snprintf(text, sizeof text, "%d", 1 - device);
    assert_true(mask_is(&now, text));
    assert_non_null(strstr(fsdp_binding(ctx), device == 0 ? "GPU 0000:11:00.0" : "GPU 0000:22:00.0"));
    int sum = device;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (fsdp_test_size() == 2) {
        assert_int_equal(1, sum); /* one each */
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* What asks where pointers point, and how many devices there are for the log, comes later. */
static void the_device_is_set_before_anything_but_questions(void **state)
{
    const char *(*double_calls)(void);

    (void)state;
    *(void **)(void *)&double_calls = dlsym(RTLD_DEFAULT, "node_double_calls");
    if (double_calls == NULL) {
        fail();
        return;
    }
    const char *calls = double_calls(), *set = strstr(calls, "set ");
    if (set == NULL) {
        assert_int_equal(0, fsdpi_gpu_selected()); /* the one that it had anyhow */
        return;
    }
    for (const char *call = calls; call < set; call = strchr(call, ' ') + 1) {
        assert_true(strncmp(call, "count ", 6) == 0 || strncmp(call, "address ", 8) == 0 ||
                    strncmp(call, "get ", 4) == 0);
    }
}

/* A caller that has chosen a device other than HIP's first keeps it, and the plan goes around. */
static void a_choice_of_the_callers_stays(void **state)
{
    fsdp_context *ctx;

    (void)state;
    assert_true(fsdpi_gpu_select(1));
    assert_int_equal(FSDP_OK, open_with(FSDP_BIND_AUTO, &ctx));
    assert_int_equal(1, fsdpi_gpu_selected());
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void none_selects_nothing(void **state)
{
    fsdp_context *ctx;

    (void)state;
    assert_true(fsdpi_gpu_select(0));
    assert_int_equal(FSDP_OK, open_with(FSDP_BIND_NONE, &ctx));
    assert_int_equal(0, fsdpi_gpu_selected());
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* All ranks have chosen the same GPU. */
static void strict_refuses_a_shared_gpu_and_puts_things_back(void **state)
{
    fsdp_context *ctx;

    (void)state;
    if (fsdp_test_size() < 2 || !here_has_both_threads()) {
        skip();
    }
    assert_true(fsdpi_gpu_select(1));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, open_with(FSDP_BIND_STRICT, &ctx));
    assert_says(NULL, "rank 0: its GPU serves another rank too");
    assert_int_equal(1, fsdpi_gpu_selected());
}

int main(int argc, char **argv)
{
#define RESTORED(test) cmocka_unit_test_setup_teardown(test, NULL, here_restore)
    static const struct CMUnitTest tests[] = {
        RESTORED(each_rank_has_the_gpu_beside_it),
        cmocka_unit_test(the_device_is_set_before_anything_but_questions),
        RESTORED(a_choice_of_the_callers_stays),
        RESTORED(none_selects_nothing),
        RESTORED(strict_refuses_a_shared_gpu_and_puts_things_back),
    };

    return fsdp_test_main(argc, argv, tests, here_open, here_close);
}
