/* Which hardware thread a progress thread has for itself, and how much of a core each rank can count on. */
#include <stdlib.h>
#include <string.h>

#include "fsdp/config.h"
#include "lib/topology/mask.h"
#include "lib/topology/progress_cpu.h"
#include "tests/support/made_up_root.h"

enum { MOST_RANKS = 8 };

static fsdpi_cpu_claim claims[MOST_RANKS];
static char            why[256];

static fsdp_mask mask_of(const char *text)
{
    fsdp_mask mask;

    assert_int_equal(FSDP_OK, fsdp_mask_read(text, &mask));
    return mask;
}

static void claim(int rank, const char *launched, const char *threads, int wanted)
{
    claims[rank] = (fsdpi_cpu_claim){.launched = mask_of(launched),
                                     .threads  = mask_of(threads),
                                     .rank     = 10 + rank,
                                     .wanted   = wanted,
                                     .spare    = -1,
                                     .idle     = -1};
}

static int chosen(size_t n, size_t mine)
{
    return fsdpi_progress_cpu(claims, n, mine, false, why, sizeof why);
}

static void a_number_has_to_be_in_the_launchers_mask(void **state)
{
    (void)state;
    claim(0, "0-3", "0-3", 7);
    claim(1, "4-7", "4-7", FSDP_CPU_AUTO);
    assert_int_equal(-1, chosen(2, 0));
    assert_non_null(strstr(why, "has given rank 10: 0-3"));
    claim(0, "0-3", "0-2", 3); /* not where it computes: all the better */
    assert_int_equal(3, chosen(2, 0));
    assert_string_equal("", why);
}

static void a_number_cannot_be_another_ranks(void **state)
{
    (void)state;
    claim(0, "0-7", "0-3", 5);
    claim(1, "0-7", "4-7", FSDP_CPU_AUTO);
    assert_int_equal(-1, chosen(2, 0));
    assert_non_null(strstr(why, "is rank 11's, which computes on 4-7"));
    claim(0, "0-7", "0-7", 5);
    claim(1, "0-7", "0-7", 5);
    assert_int_equal(-1, chosen(2, 0));
    assert_non_null(strstr(why, "asks for it too"));
    assert_int_equal(-1, chosen(2, 1));
    claim(1, "0-7", "0-7", 6);
    assert_int_equal(5, chosen(2, 0)); /* ranks that are not bound: nothing says whose it is */
    assert_int_equal(6, chosen(2, 1));
}

static void auto_takes_what_is_left_over_and_nothing_else(void **state)
{
    (void)state;
    claim(0, "0-3", "0-3", FSDP_CPU_AUTO);
    claim(1, "4-7", "4-7", FSDP_CPU_AUTO);
    assert_int_equal(-1, chosen(2, 0));
    claims[0].idle = 3;
    assert_int_equal(3, chosen(2, 0));
    claims[0].spare = 2;
    assert_int_equal(2, chosen(2, 0));
    assert_int_equal(-1, fsdpi_progress_cpu(claims, 2, 0, true, why, sizeof why));
    claims[0].wanted = FSDP_CPU_NONE;
    assert_int_equal(-1, chosen(2, 0));
    claim(0, "0-7", "0-7", FSDP_CPU_AUTO);
    claims[0].idle = 7; /* where rank 1 computes too */
    assert_int_equal(-1, chosen(2, 0));
    assert_string_equal("", why);
}

static void put_core(int thread, const char *siblings)
{
    char path[96];

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", thread);
    put_file(path, siblings);
}

static void a_core_is_idle_where_fewer_threads_compute(void **state)
{
    const fsdp_mask all = mask_of("0-7"), two = mask_of("0-1");

    (void)state;
    for (int t = 0; t < 4; t++) {
        const char *const SIBLINGS[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
        put_core(t, SIBLINGS[t]);
        put_core(t + 4, SIBLINGS[t]);
    }
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, NULL));
    assert_int_equal(3, fsdpi_idle_cpu(made_up_root(), &all, "3"));
    assert_int_equal(3, fsdpi_idle_cpu(made_up_root(), &all, "1"));
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, "4")); /* four cores: hardware threads do not count */
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, "2,2"));
    assert_int_equal(3, fsdpi_idle_cpu(made_up_root(), &all, "3,1"));
    assert_int_equal(1, fsdpi_idle_cpu(made_up_root(), &two, "1"));
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, ""));
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, "many"));
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, "0"));
    assert_int_equal(-1, fsdpi_idle_cpu(made_up_root(), &all, "99999999999999999999,99999999999"));
}

static void assert_share(double wanted, double share)
{
    assert_true(share > wanted - 1e-9 && share < wanted + 1e-9);
}

static void ranks_share_cores_and_the_time_of_them(void **state)
{
    (void)state;
    for (int r = 0; r < MOST_RANKS; r++) {
        claim(r, "0-1", "0-1", FSDP_CPU_AUTO);
    }
    assert_share(1.0, fsdpi_share_of_core(claims, 2, 0.0));
    assert_share(0.25, fsdpi_share_of_core(claims, 8, 0.0));
    assert_share(0.125, fsdpi_share_of_core(claims, 8, 1.0));
    assert_share(0.5, fsdpi_share_of_core(claims, 2, 1.0));
    assert_share(0.25, fsdpi_share_of_core(claims, 8, 64.0));
    claim(1, "2-3", "2-3", FSDP_CPU_AUTO);
    assert_share(1.0, fsdpi_share_of_core(claims, 4, 0.0));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_to_be_in_the_launchers_mask),
        cmocka_unit_test(a_number_cannot_be_another_ranks),
        cmocka_unit_test(auto_takes_what_is_left_over_and_nothing_else),
        cmocka_unit_test_setup_teardown(a_core_is_idle_where_fewer_threads_compute, make_up_root, remove_made_up_root),
        cmocka_unit_test(ranks_share_cores_and_the_time_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
