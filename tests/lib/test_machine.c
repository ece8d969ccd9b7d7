/** @file Machines with more hardware threads than a cpu_set_t holds. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/node/machine.h"
#include "tests/support/made_up_root.h"
#include "tests/support/mpi_test.h"

enum { THREADS = 2048 }; /* that the made-up machine can have */

/* The threads from `first` on that this process may use there; 0: it is on the real machine. */
static struct {
    size_t first, count;
} made_up;

/* In place of the C library's: as Linux, which refuses a mask that is shorter than the machine's. */
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *mask)
{
    memset(mask, 0, bytes);
    if (made_up.count == 0) {
        return syscall(SYS_sched_getaffinity, process, bytes, mask) < 0 ? -1 : 0;
    }
    if (bytes < THREADS / 8) {
        errno = EINVAL;
        return -1;
    }
    for (size_t thread = made_up.first; thread < made_up.first + made_up.count; thread++) {
        CPU_SET_S(thread, bytes, mask);
    }
    return 0;
}

static int look(size_t first, size_t count)
{
    fsdpi_machine machine;

    made_up.first  = first;
    made_up.count  = count;
    const int code = fsdpi_machine_look(MPI_COMM_WORLD, 60, &machine);
    made_up.count  = 0;
    assert_int_equal(MPI_SUCCESS, code);
    assert_true(machine.cache_bytes > 0);
    return machine.cores;
}

static void all_threads_of_a_large_machine_are_counted(void **state)
{
    (void)state;
    assert_int_equal(THREADS, look(0, THREADS));
}

static void ranks_bound_beyond_1024_are_counted_together(void **state)
{
    const size_t rank = (size_t)fsdp_test_rank();

    (void)state;
    assert_int_equal(7 * fsdp_test_size(), look(1000 + 7 * rank, 7));
    assert_int_equal(1, look(THREADS - 1, 1));
}

static fsdpi_core_mask mask_of(const size_t *threads, size_t n)
{
    fsdpi_core_mask mask = {0};

    for (size_t i = 0; i < n; i++) {
        CPU_SET_S(threads[i], sizeof mask, mask.set);
    }
    return mask;
}

static void put_cache(size_t thread, const char *size, const char *sharers)
{
    char path[96];

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cache/index3/size", thread);
    put_file(path, size);
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cache/index3/shared_cpu_list", thread);
    put_file(path, sharers);
}

static void caches_above_threads_beyond_1024_count_once_each(void **state)
{
    static const size_t   used[] = {3, 1500, 1501, 2047, 8191};
    const fsdpi_core_mask cores  = mask_of(used, sizeof used / sizeof used[0]);

    (void)state;
    put_cache(3, "1M\n", "0-7\n");
    put_cache(1500, "2048K\n", "1496-1503\n");
    put_cache(1501, "2048K\n", "1496-1503\n");
    put_cache(1502, "64M\n", "1502\n"); /* not used */
    put_cache(2047, "4M\n", "2040-2047\n");
    put_cache(8191, "8M\n", "8184-8191\n");
    assert_int_equal((size_t)15 << 20, fsdpi_cache_bytes(made_up_root(), &cores));
}

static void a_machine_that_says_nothing_has_a_usual_cache(void **state)
{
    static const size_t   used[] = {0, 2047};
    const fsdpi_core_mask cores  = mask_of(used, 2);

    (void)state;
    assert_int_equal((size_t)32 << 20, fsdpi_cache_bytes(made_up_root(), &cores));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_threads_of_a_large_machine_are_counted),
        cmocka_unit_test(ranks_bound_beyond_1024_are_counted_together),
        cmocka_unit_test_setup_teardown(caches_above_threads_beyond_1024_count_once_each, make_up_root,
                                        remove_made_up_root),
        cmocka_unit_test_setup_teardown(a_machine_that_says_nothing_has_a_usual_cache, make_up_root,
                                        remove_made_up_root),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
