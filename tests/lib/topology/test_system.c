#include <stdlib.h>

#include "lib/topology/bind.h"
#include "lib/topology/cpu_quota.h"
#include "lib/topology/place.h"
#include "tests/lib/topology/nodes.h"
#include "tests/support/made_up_root.h"

static void assert_quota(double wanted)
{
    const double quota = fsdpi_cpu_quota(made_up_root());

    if (quota < wanted - 1e-9 || quota > wanted + 1e-9) {
        fail_msg("the quota is %g and should be %g", quota, wanted);
    }
}

static void a_machine_that_says_nothing_has_no_quota(void **state)
{
    (void)state;
    assert_quota(0.0);
    put_file("/proc/self/cgroup", "0::/job\n");
    assert_quota(0.0);
    put_file("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
    assert_quota(0.0);
}

static void version_2_has_the_least_quota_on_the_way_up(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "0::/job/step\n");
    put_file("/sys/fs/cgroup/job/step/cpu.max", "400000 100000\n");
    assert_quota(4.0);
    put_file("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    assert_quota(1.5);
    put_file("/sys/fs/cgroup/cpu.max", "800000 100000\n");
    assert_quota(1.5);
}

static void version_1_has_two_files_and_minus_1_for_no_limit(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "3:cpuset:/a\n2:cpu,cpuacct:/a\n");
    put_file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    assert_quota(0.0);
    put_file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n");
    assert_quota(2.5);
}

static void put_flat_machine(void)
{
    put_file("/sys/devices/system/node/has_cpu", "0\n");
    put_file("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-3\n");
    put_file("/sys/devices/system/cpu/cpu4/cache/index3/shared_cpu_list", "4-7\n");
}

static void threads_under_one_cache_are_flat(void **state)
{
    const fsdp_mask first = mask_of("0-3"), part = mask_of("4-5"), both = mask_of("0-7"), none = {{0}};

    (void)state;
    assert_false(fsdpi_is_flat(made_up_root(), &first)); /* nothing is known */
    put_flat_machine();
    assert_true(fsdpi_is_flat(made_up_root(), &first));
    assert_true(fsdpi_is_flat(made_up_root(), &part));
    assert_false(fsdpi_is_flat(made_up_root(), &both));
    assert_false(fsdpi_is_flat(made_up_root(), &none));
}

static void several_numa_nodes_or_a_driver_are_not_flat(void **state)
{
    const fsdp_mask first = mask_of("0-3");

    (void)state;
    put_flat_machine();
    put_file("/sys/devices/system/node/has_cpu", "0-1\n");
    assert_false(fsdpi_is_flat(made_up_root(), &first));
    put_flat_machine();
    put_file("/sys/class/kfd/kfd/dev", "1:1\n");
    assert_false(fsdpi_is_flat(made_up_root(), &first));
}

static void assert_place(const char *threads, int cache, int numa)
{
    const fsdp_mask   mask  = mask_of(threads);
    const fsdpi_place place = fsdpi_place_of(made_up_root(), &mask);

    assert_int_equal(cache, place.cache);
    assert_int_equal(numa, place.numa);
}

/* Of two sockets with two caches each, whose second hardware threads come behind all first ones. */
static void a_place_is_the_cache_and_the_numa_node_of_all_threads(void **state)
{
    (void)state;
    assert_place("0-3", -1, -1); /* nothing is known */
    put_file("/sys/devices/system/node/has_cpu", "0-1\n");
    put_file("/sys/devices/system/node/node0/cpulist", "0-7,16-23\n");
    put_file("/sys/devices/system/node/node1/cpulist", "8-15,24-31\n");
    put_file("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-3,16-19\n");
    put_file("/sys/devices/system/cpu/cpu5/cache/index3/shared_cpu_list", "4-7,20-23\n");
    put_file("/sys/devices/system/cpu/cpu12/cache/index3/shared_cpu_list", "12-15,28-31\n");
    assert_place("0-3", 0, 0);
    assert_place("0,16", 0, 0);
    assert_place("5", 4, 0);
    assert_place("12,28", 12, 1);
    assert_place("0-7", -1, 0);
    assert_place("0-31", -1, -1);
    assert_place("9", -1, 1); /* of its cache nothing is known */
}

static void a_process_bound_to_nothing_has_no_place(void **state)
{
    const fsdp_mask   none  = {{0}};
    const fsdpi_place place = fsdpi_place_of(made_up_root(), &none);

    (void)state;
    assert_int_equal(-1, place.cache);
    assert_int_equal(-1, place.numa);
}

static void launchers_say_how_many_processes_a_node_has(void **state)
{
    (void)state;
    (void)unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    (void)unsetenv("MPI_LOCALNRANKS");
    assert_int_equal(0, fsdpi_processes_on_host());
    (void)setenv("MPI_LOCALNRANKS", "4", 1);
    assert_int_equal(4, fsdpi_processes_on_host());
    (void)setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "nonsense", 1);
    assert_int_equal(4, fsdpi_processes_on_host());
    (void)setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "8", 1);
    assert_int_equal(8, fsdpi_processes_on_host());
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_up_root, remove_made_up_root)
    static const struct CMUnitTest tests[] = {
        WITH_ROOT(a_machine_that_says_nothing_has_no_quota),
        WITH_ROOT(version_2_has_the_least_quota_on_the_way_up),
        WITH_ROOT(version_1_has_two_files_and_minus_1_for_no_limit),
        WITH_ROOT(threads_under_one_cache_are_flat),
        WITH_ROOT(several_numa_nodes_or_a_driver_are_not_flat),
        WITH_ROOT(a_place_is_the_cache_and_the_numa_node_of_all_threads),
        WITH_ROOT(a_process_bound_to_nothing_has_no_place),
        cmocka_unit_test(launchers_say_how_many_processes_a_node_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
