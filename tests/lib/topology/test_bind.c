/* What fsdp_init() binds, on this machine as it is and as a record describes it: two NUMA nodes of one thread each. */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsdp/collectives.h"
#include "lib/context/context.h"
#include "tests/lib/topology/here.h"

static fsdp_context *open_context(int bind, const char *topology)
{
    const fsdp_config config = here_config(bind, topology);
    fsdp_context     *ctx;

    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static void assert_same_mask(void)
{
    const fsdp_mask now = here_mask_now();

    assert_true(fsdpi_mask_equal(here_mask_before(), &now));
}

/* ---- on any machine, under any launch ---------------------------------------------------------------------------- */

static void masks_only_ever_become_narrower(void **state)
{
    static const int BINDS[] = {FSDP_BIND_AUTO, FSDP_BIND_NONE, FSDP_BIND_STRICT};

    (void)state;
    for (size_t i = 0; i < sizeof BINDS / sizeof BINDS[0]; i++) {
        const fsdp_config config = here_config(BINDS[i], NULL);
        fsdp_context     *ctx;
        const fsdp_mask   was    = here_mask_now();
        const fsdp_status status = fsdp_init(MPI_COMM_WORLD, &config, &ctx);
        const fsdp_mask   now    = here_mask_now();

        assert_true(status == FSDP_OK || (BINDS[i] == FSDP_BIND_STRICT && status == FSDP_ERR_UNSUPPORTED));
        assert_true(fsdp_mask_count(&now) > 0);
        assert_true(fsdpi_mask_within(&now, &was));
        if (status == FSDP_OK) {
            assert_string_not_equal("", fsdp_binding(ctx));
        } else {
            assert_true(fsdpi_mask_equal(&was, &now)); /* a failure leaves no trace */
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

static void none_leaves_everything(void **state)
{
    fsdp_context *ctx = open_context(FSDP_BIND_NONE, here_record());

    (void)state;
    assert_same_mask();
    assert_binding_says(ctx, "left alone: FSDP_BIND is 'none'");
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void another_machines_record_binds_nothing(void **state)
{
    char          other[1024];
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    (void)snprintf(other, sizeof other, "%s", node_file("eight_gpus.xml"));
    ctx = open_context(FSDP_BIND_AUTO, other);
    assert_same_mask();
    assert_binding_says(ctx, "left alone: FSDP_TOPOLOGY is a record of another machine");
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    config = here_config(FSDP_BIND_STRICT, other);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_says(NULL, "a record of another machine");
    assert_null(ctx);
}

static void a_record_that_cannot_be_read_is_an_error_on_all_ranks(void **state)
{
    const fsdp_config config = here_config(FSDP_UNSET, "/nowhere/at/all.xml");
    fsdp_context     *ctx;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_says(NULL, "/nowhere/at/all.xml");
    assert_same_mask();
}

static void a_value_that_is_none_is_an_error(void **state)
{
    const fsdp_config config = here_config(4, NULL);
    fsdp_context     *ctx;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_says(NULL, "auto|none|strict|dry");
}

static void ranks_must_agree_on_it(void **state)
{
    const fsdp_config config = here_config(fsdp_test_rank() == 0 ? FSDP_BIND_NONE : FSDP_BIND_AUTO, NULL);
    fsdp_context     *ctx    = NULL;

    (void)state;
    assert_int_equal(fsdp_test_size() > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Another part of the job could take the same cores. */
static void a_part_of_the_nodes_processes_binds_nothing(void **state)
{
    const fsdp_config config = here_config(FSDP_BIND_STRICT, here_record());
    fsdp_context     *ctx;

    (void)state;
    if (fsdp_test_size() > 1 && here_has_both_threads()) {
        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, &config, &ctx));
        assert_same_mask();
        assert_binding_says(ctx, "the launcher has");
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* ---- as if there were two NUMA nodes ----------------------------------------------------------------------------- */

static void two_ranks_take_a_core_each(void **state)
{
    char text[16];

    (void)state;
    if (fsdp_test_size() != 2 || !here_has_both_threads()) {
        return;
    }
    fsdp_context   *ctx = open_context(FSDP_BIND_AUTO, here_record());
    const fsdp_mask now = here_mask_now();
    (void)snprintf(text, sizeof text, "%d", fsdp_test_rank());
    assert_true(mask_is(&now, text));
    assert_binding_says(ctx, fsdp_test_rank() == 0 ? "cores 0 (the 1 core of NUMA node 0, next to its GPU)"
                                                   : "cores 1 (the 1 core of NUMA node 1, next to its GPU)");
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_same_mask(); /* it is given back */

    fsdp_config config = here_config(FSDP_BIND_AUTO, here_record());
    config.bind_keep   = FSDP_BIND_KEEP;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    const fsdp_mask kept = here_mask_now();
    assert_true(mask_is(&kept, text));

    ctx                   = open_context(FSDP_BIND_AUTO, here_record()); /* and a later context finds the place good */
    const fsdp_mask again = here_mask_now();
    assert_true(mask_is(&again, text));
    assert_null(strstr(fsdp_binding(ctx), "binds threads"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* What it would bind is what it does bind. */
static void a_dry_run_only_says_what_it_would_do(void **state)
{
    (void)state;
    if (fsdp_test_size() != 2 || !here_has_both_threads()) {
        return;
    }
    fsdp_context *ctx = open_context(FSDP_BIND_DRY, here_record());
    assert_same_mask();
    assert_binding_says(ctx, "dry run, nothing is bound; 'auto' would: cores ");
    assert_binding_says(ctx, fsdp_test_rank() == 0 ? "cores 0 (the 1 core of" : "cores 1 (the 1 core of");
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_same_mask();
}

/* By the environment of an OpenMP runtime, or by the mask of the calling thread. */
static void what_the_program_has_bound_is_left_alone(void **state)
{
    fsdpi_binding program = {.spare = -1, .device_before = -1};

    (void)state;
    if (fsdp_test_size() != 2 || !here_has_both_threads()) {
        return;
    }
    setenv("OMP_PLACES", "cores", 1);
    fsdp_context *ctx = open_context(FSDP_BIND_AUTO, here_record());
    unsetenv("OMP_PLACES");
    assert_same_mask();
    assert_binding_says(ctx, "cores and memory left alone: OMP_PLACES binds threads");
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));

    setenv("OMP_PROC_BIND", "false", 1);
    ctx = open_context(FSDP_BIND_AUTO, here_record());
    unsetenv("OMP_PROC_BIND");
    assert_null(strstr(fsdp_binding(ctx), "left alone: OMP"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));

    program.set_threads = true; /* as if it had bound itself, to the other rank's core */
    fsdpi_mask_add(&program.threads_before, 1 - fsdp_test_rank());
    fsdpi_bind_undo(&program);
    const fsdp_mask own  = here_mask_now();
    ctx                  = open_context(FSDP_BIND_AUTO, here_record());
    const fsdp_mask now  = here_mask_now();
    const int       said = strstr(fsdp_binding(ctx), "the program binds threads") != NULL;
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    const fsdp_mask after = here_mask_now();
    assert_int_equal(1, fsdp_mask_count(&own));
    assert_true(fsdpi_mask_equal(&own, &now) && fsdpi_mask_equal(&own, &after));
    assert_true(said || fsdp_test_size() != 2);
}

/* Not even if it is finalized in another thread than it was opened in, and not what was changed in between. */
static void only_what_was_bound_is_given_back(void **state)
{
    fsdpi_bind_order order   = {.spare = -1, .memory = -1, .device = -1};
    fsdpi_binding    binding = {.spare = -1, .device_before = -1};
    fsdpi_binding    changed = {.spare = -1, .device_before = -1, .set_threads = true};
    char             failed[128];

    (void)state;
    fsdpi_mask_add(&order.threads, fsdpi_mask_first(here_mask_before()));
    fsdpi_bind_apply(&order, false, &binding, failed, sizeof failed);
    fsdpi_bind_give_back(&binding);
    assert_same_mask();
    if (fsdp_mask_count(here_mask_before()) > 1) {
        binding = (fsdpi_binding){.spare = -1, .device_before = -1};
        fsdpi_bind_apply(&order, false, &binding, failed, sizeof failed);
        changed.threads_before = *here_mask_before();
        fsdpi_bind_undo(&changed); /* somebody has set it since */
        fsdpi_bind_give_back(&binding);
        assert_same_mask();
    }
}

/* Where FSDP_NODE_SIZE divides the ranks, they are on one machine all the same. */
static void pretended_nodes_share_the_machine(void **state)
{
    fsdp_config   config = here_config(FSDP_BIND_AUTO, here_record());
    fsdp_context *ctx;
    char          text[16];

    (void)state;
    if (fsdp_test_size() != 2 || !here_has_both_threads()) {
        return;
    }
    config.node_size = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    const fsdp_mask now = here_mask_now();
    (void)snprintf(text, sizeof text, "%d", fsdp_test_rank());
    assert_true(mask_is(&now, text));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Three ranks on two cores: the error names the first of them and the reason, on all ranks; else two share a NUMA node. */
static void strict_refuses_more_ranks_than_cores(void **state)
{
    const fsdp_config config = here_config(FSDP_BIND_STRICT, here_record());
    fsdp_context     *ctx;

    (void)state;
    if (fsdp_test_size() != 3 || !here_has_both_threads()) {
        return;
    }
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_null(ctx);
    assert_says(NULL, "FSDP_BIND is 'strict', but rank 0: ");
    assert_same_mask();
    ctx                 = open_context(FSDP_BIND_AUTO, here_record());
    const fsdp_mask now = here_mask_now();
    int sharing = strstr(fsdp_binding(ctx), "shared by 2 ranks: there are more ranks than cores") != NULL, all = 0;
    assert_int_equal(1, fsdp_mask_count(&now));
    (void)MPI_Allreduce(&sharing, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_int_equal(2, all);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- what is under it -------------------------------------------------------------------------------------------- */

static void *report_mask(void *mask)
{
    return fsdpi_mask_now(mask) ? mask : NULL;
}

static void *wait_then_report(void *arguments)
{
    void **both = arguments;

    (void)pthread_barrier_wait(both[0]);
    return report_mask(both[1]);
}

static void a_thread_goes_to_the_spare_core(void **state)
{
    const fsdpi_binding binding = {.spare = fsdpi_mask_first(here_mask_before()), .device_before = -1};
    pthread_barrier_t   barrier;
    pthread_t           thread;
    fsdp_mask           found, spare = {{0}};
    void               *arguments[] = {&barrier, &found};

    (void)state;
    assert_int_equal(0, pthread_barrier_init(&barrier, NULL, 2));
    assert_int_equal(0, pthread_create(&thread, NULL, wait_then_report, arguments));
    fsdpi_bind_thread(&binding, thread);
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_join(thread, NULL);
    (void)pthread_barrier_destroy(&barrier);
    fsdpi_mask_add(&spare, binding.spare);
    assert_true(fsdpi_mask_equal(&spare, &found));
    assert_same_mask();
}

static void what_the_launcher_gave_is_known_after_narrowing(void **state)
{
    fsdpi_bind_order order   = {.spare = -1, .memory = -1, .device = -1};
    fsdpi_binding    binding = {.spare = -1, .device_before = -1};
    char             failed[128];

    (void)state;
    fsdpi_mask_add(&order.threads, fsdpi_mask_first(here_mask_before()));
    fsdpi_bind_apply(&order, false, &binding, failed, sizeof failed);
    const fsdp_mask now      = here_mask_now();
    const fsdp_mask launched = fsdpi_mask_launched(&now);
    assert_int_equal(1, fsdp_mask_count(&now));
    assert_true(fsdpi_mask_equal(here_mask_before(), &launched));
}

static void an_order_for_cores_outside_the_mask_changes_nothing(void **state)
{
    fsdpi_bind_order order   = {.spare = -1, .memory = -1, .device = -1};
    fsdpi_binding    binding = {.spare = -1, .device_before = -1};
    char             failed[128];

    (void)state;
    fsdpi_mask_add(&order.threads, FSDPI_MASK_BITS - 1);
    fsdpi_bind_apply(&order, true, &binding, failed, sizeof failed);
    assert_string_equal("", failed);
    assert_false(binding.set_threads);
    assert_same_mask();
}

static int policy_now(void)
{
    int policy = MPOL_DEFAULT;

    return syscall(SYS_get_mempolicy, &policy, NULL, 0UL, NULL, 0UL) == 0 ? policy : -1;
}

static void memory_is_preferred_near_and_a_policy_that_is_set_stays(void **state)
{
    fsdpi_bind_order order   = {.threads = *here_mask_before(), .spare = -1, .memory = 0, .device = -1};
    fsdpi_binding    binding = {.spare = -1, .device_before = -1};
    char             failed[128];

    (void)state;
    if (policy_now() != MPOL_DEFAULT || syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL) != 0) {
        return; /* a launcher has set one, or the system has none */
    }
    fsdpi_bind_apply(&order, false, &binding, failed, sizeof failed);
    assert_string_equal("", failed);
    assert_int_equal(MPOL_PREFERRED, policy_now());
    fsdpi_bind_apply(&order, true, &binding, failed, sizeof failed);
    assert_int_equal(MPOL_PREFERRED, policy_now());
    fsdpi_bind_undo(&binding);
    assert_int_equal(MPOL_DEFAULT, policy_now());
    order.memory = 4000;
    fsdpi_bind_apply(&order, true, &binding, failed, sizeof failed);
    assert_non_null(strstr(failed, "memory: "));
}

int main(int argc, char **argv)
{
#define RESTORED(test) cmocka_unit_test_teardown(test, here_restore)
    static const struct CMUnitTest tests[] = {
        RESTORED(masks_only_ever_become_narrower),
        RESTORED(none_leaves_everything),
        RESTORED(another_machines_record_binds_nothing),
        RESTORED(a_record_that_cannot_be_read_is_an_error_on_all_ranks),
        RESTORED(a_value_that_is_none_is_an_error),
        RESTORED(ranks_must_agree_on_it),
        RESTORED(a_part_of_the_nodes_processes_binds_nothing),
        RESTORED(two_ranks_take_a_core_each),
        RESTORED(a_dry_run_only_says_what_it_would_do),
        RESTORED(what_the_program_has_bound_is_left_alone),
        RESTORED(only_what_was_bound_is_given_back),
        RESTORED(pretended_nodes_share_the_machine),
        RESTORED(strict_refuses_more_ranks_than_cores),
        RESTORED(a_thread_goes_to_the_spare_core),
        RESTORED(what_the_launcher_gave_is_known_after_narrowing),
        RESTORED(an_order_for_cores_outside_the_mask_changes_nothing),
        RESTORED(memory_is_preferred_near_and_a_policy_that_is_set_stays),
    };

    return fsdp_test_main(argc, argv, tests, here_open, here_close);
}
