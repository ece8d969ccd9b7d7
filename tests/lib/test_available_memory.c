#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/available_memory.h"
#include "tests/support/made_up_root.h"

enum { MEBIBYTE = 1 << 20 };

static void put_number(const char *path, size_t number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%zu\n", number);
    put_file(path, text);
}

/* 1000 MiB. */
static void put_meminfo(void)
{
    put_file("/proc/meminfo",
             "MemTotal:        4096000 kB\nMemFree:          512000 kB\nMemAvailable:    1024000 kB\n");
}

static void a_machine_that_says_nothing_has_no_limit(void **state)
{
    (void)state;
    assert_true(fsdpi_available_memory(made_up_root()) == SIZE_MAX);
    put_file("/proc/meminfo", "MemTotal:        4096000 kB\n"); /* Linux before 3.14 */
    assert_true(fsdpi_available_memory(made_up_root()) == SIZE_MAX);
}

static void without_groups_it_is_what_linux_calls_available(void **state)
{
    (void)state;
    put_meminfo();
    assert_int_equal(1000 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
}

/* A job's limit is found above its step, which has none; cached files that are not in use count as free. */
static void version_2_counts_the_tightest_group_on_the_way_up(void **state)
{
    (void)state;
    put_meminfo();
    put_file("/proc/self/cgroup", "0::/job/step\n");
    put_file("/sys/fs/cgroup/job/step/memory.max", "max\n");
    put_number("/sys/fs/cgroup/job/step/memory.current", 100 * MEBIBYTE);
    assert_int_equal(1000 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
    put_number("/sys/fs/cgroup/job/memory.max", 300 * MEBIBYTE);
    put_number("/sys/fs/cgroup/job/memory.current", 120 * MEBIBYTE);
    assert_int_equal(180 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
    put_file("/sys/fs/cgroup/job/memory.stat",
             "anon 5\ninactive_anon 7340032\ninactive_file 20971520\nactive_file 1\n");
    assert_int_equal(200 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
    put_number("/sys/fs/cgroup/memory.max", 50 * MEBIBYTE); /* of a container, which sees itself as the root */
    put_number("/sys/fs/cgroup/memory.current", 60 * MEBIBYTE);
    assert_int_equal(0, fsdpi_available_memory(made_up_root()));
}

/* In a container the path is the host's, of which only the mounted group is to be seen. */
static void version_1_is_found_behind_a_path_of_the_host(void **state)
{
    (void)state;
    put_meminfo();
    put_file("/proc/self/cgroup", "12:pids:/docker/0123\n5:cpu,memory:/docker/0123\n1:name=systemd:/docker/0123\n");
    put_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", 400 * MEBIBYTE);
    put_number("/sys/fs/cgroup/memory/memory.usage_in_bytes", 150 * MEBIBYTE);
    assert_int_equal(250 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
    put_file("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 52428800\n");
    assert_int_equal(300 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* how it writes "none" */
    assert_int_equal(1000 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
}

static void groups_of_other_controllers_do_not_count(void **state)
{
    (void)state;
    put_meminfo();
    put_file("/proc/self/cgroup", "5:memoryless,cpu:/a\n4:broken\n");
    put_number("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 1);
    put_number("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", 0);
    assert_int_equal(1000 * (size_t)MEBIBYTE, fsdpi_available_memory(made_up_root()));
}

static void this_machine_has_some(void **state)
{
    (void)state;
    const size_t left = fsdpi_available_memory("");
    assert_true(left > 0 && left < SIZE_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_that_says_nothing_has_no_limit, make_up_root, remove_made_up_root),
        cmocka_unit_test_setup_teardown(without_groups_it_is_what_linux_calls_available, make_up_root,
                                        remove_made_up_root),
        cmocka_unit_test_setup_teardown(version_2_counts_the_tightest_group_on_the_way_up, make_up_root,
                                        remove_made_up_root),
        cmocka_unit_test_setup_teardown(version_1_is_found_behind_a_path_of_the_host, make_up_root,
                                        remove_made_up_root),
        cmocka_unit_test_setup_teardown(groups_of_other_controllers_do_not_count, make_up_root, remove_made_up_root),
        cmocka_unit_test(this_machine_has_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
