/**
 * @file
 * What a rank spends on waiting, counted: looks that give the core away, naps, and calls of MPI. The clocks that the library reads
 * are made up here, a microsecond for each time they are read, so that nothing depends on how fast the machine is.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fsdp/collectives.h"
#include "lib/base/clock.h"
#include "lib/context/context.h"
#include "lib/topology/bind.h"
#include "lib/topology/mask.h"
#include "tests/support/mpi_test.h"

/* ---- what the library sees of the system: --wrap of the linker ------------------------------------------------------ */

enum { PIECES = 500 }; /* of what MPI is made to be at work on */

static _Atomic long     yields, naps, work_left, naps_at_work;
static _Atomic uint64_t now_ns, used_ns;
static _Atomic bool     made_up;

int  __real_sched_yield(void);                                                             /* NOLINT */
int  __wrap_sched_yield(void);                                                             /* NOLINT */
int  __real_nanosleep(const struct timespec *time, struct timespec *left);                 /* NOLINT */
int  __wrap_nanosleep(const struct timespec *time, struct timespec *left);                 /* NOLINT */
int  __real_clock_gettime(clockid_t clock, struct timespec *time);                         /* NOLINT */
int  __wrap_clock_gettime(clockid_t clock, struct timespec *time);                         /* NOLINT */
long __real_syscall(long number, ...);                                                     /* NOLINT */
long __wrap_syscall(long number, ...);                                                     /* NOLINT */
int  __real_MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status); /* NOLINT */
int  __wrap_MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status); /* NOLINT */

int __wrap_sched_yield(void) /* NOLINT */
{
    (void)atomic_fetch_add(&yields, 1);
    return __real_sched_yield();
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left) /* NOLINT */
{
    (void)atomic_fetch_add(&naps, 1);
    return __real_nanosleep(time, left);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) /* NOLINT */
{
    if (!atomic_load(&made_up) || (clock != CLOCK_MONOTONIC && clock != CLOCK_THREAD_CPUTIME_ID)) {
        return __real_clock_gettime(clock, time);
    }
    const uint64_t ns = 1000 + atomic_fetch_add(clock == CLOCK_MONOTONIC ? &now_ns : &used_ns, 1000);
    *time             = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    return 0;
}

/* Naps are waits for a word that end by themselves. */
long __wrap_syscall(long number, ...) /* NOLINT */
{
    va_list list;
    long    a[6];

    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3] != 0) {
        (void)atomic_fetch_add(&naps, 1);
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* MPI, as it moves pieces of somebody's message: each takes time of a core. After the last, the others are told. */
int __wrap_MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) /* NOLINT */
{
    const long left = atomic_load(&work_left);

    if (left > 0) {
        (void)atomic_fetch_add(&used_ns, 50000);
        atomic_store(&work_left, left - 1);
        if (left == PIECES) {
            atomic_store(&naps_at_work, -atomic_load(&naps));
        }
        if (left == 1) {
            (void)atomic_fetch_add(&naps_at_work, atomic_load(&naps));
            for (int r = 1; r < fsdp_test_size(); r++) {
                MPI_Send(NULL, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD);
            }
        }
    }
    return __real_MPI_Iprobe(source, tag, comm, flag, status);
}

/* ---- contexts on one core ------------------------------------------------------------------------------------------- */

static cpu_set_t before;

static int first_of_rank_0(void)
{
    int cpu = 0;

    while (!CPU_ISSET((size_t)cpu, &before)) {
        cpu++;
    }
    MPI_Bcast(&cpu, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return cpu;
}

/* All ranks on one core, where they take turns. False, on all, where that is not allowed. */
static bool go_to_one_core(void)
{
    cpu_set_t one;
    int       all;

    CPU_ZERO(&one);
    CPU_SET((size_t)first_of_rank_0(), &one);
    all = sched_setaffinity(0, sizeof one, &one) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

static int remember_cores(void **state)
{
    (void)state;
    return sched_getaffinity(0, sizeof before, &before);
}

static int restore(void **state)
{
    (void)state;
    atomic_store(&made_up, false);
    return sched_setaffinity(0, sizeof before, &before);
}

static fsdp_status open_context(int progress, int progress_cpu, fsdp_context **ctx)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.node_size    = 0;
    config.progress     = progress;
    config.progress_cpu = progress_cpu;
    config.log_level    = FSDP_LOG_OFF;
    config.timeout_s    = 0; /* it would count made-up time */
    return fsdp_init(MPI_COMM_WORLD, &config, ctx);
}

static fsdp_context *open_on_one_core(void)
{
    fsdp_context *ctx;

    if (!go_to_one_core()) {
        skip();
    }
    assert_int_equal(FSDP_OK, open_context(FSDP_PROGRESS_INLINE, FSDP_CPU_NONE, &ctx));
    return ctx;
}

static void ranks_that_take_turns_know_it(void **state)
{
    fsdp_context *ctx = open_on_one_core();

    (void)state;
    assert_true(ctx->queue.share * fsdp_test_size() < 1.0 + 1e-9);
    assert_true(ctx->queue.share * fsdp_test_size() > 0.0);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void barrier(fsdp_context *ctx, int late)
{
    if (fsdp_test_rank() == late) {
        const struct timespec some = {.tv_nsec = 3000000};
        (void)__real_nanosleep(&some, NULL);
    }
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
}

/*
 * The clock is read once for each look, so that a rank with a core for itself gives way 200 times before it naps; on a
 * core that n share, all of them together do.
 */
static void they_give_way_for_no_longer_than_one_rank_would(void **state)
{
    enum { BARRIERS = 10, WINDOW_US = 200, FEW = 4 };
    fsdp_context *ctx = open_on_one_core();

    (void)state;
    barrier(ctx, -1);
    atomic_store(&made_up, true);
    for (int b = 0; b < BARRIERS; b++) {
        atomic_store(&yields, 0);
        barrier(ctx, b % fsdp_test_size());
        assert_true((double)atomic_load(&yields) <= WINDOW_US * ctx->queue.share + FEW);
    }
    atomic_store(&made_up, false);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void who_waits_does_not_nap_while_mpi_is_at_work(void **state)
{
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_OK, open_context(FSDP_PROGRESS_INLINE, FSDP_CPU_NONE, &ctx));
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    atomic_store(&made_up, true);
    if (fsdp_test_rank() == 0) {
        ctx->queue.helping = (fsdpi_helping){.least = 1000}; /* that a call takes when there is nothing to do */
        atomic_store(&work_left, PIECES);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    assert_int_equal(0, atomic_load(&work_left));
    assert_int_equal(0, atomic_load(&naps_at_work));
    atomic_store(&made_up, false);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- a control group that allows the time of one core ---------------------------------------------------------------- */

static void a_quota_is_shared_as_cores_are(void **state)
{
    enum { OPERATIONS = 50, ELEMENTS = 10007 };
    static int32_t values[ELEMENTS];
    fsdp_context  *ctx;

    (void)state;
    for (int progress = FSDP_PROGRESS_AUTO; progress <= FSDP_PROGRESS_INLINE; progress++) {
        assert_int_equal(FSDP_OK, open_context(progress, FSDP_CPU_AUTO, &ctx));
        assert_true(ctx->queue.share * fsdp_test_size() < 1.0 + 1e-9);
        assert_false(ctx->queue.own_core.has);
        for (int i = 0; i < OPERATIONS; i++) {
            fsdp_request *request;
            size_t        count = i % 2 == 0 ? 1 : ELEMENTS;

            for (size_t v = 0; v < count; v++) {
                values[v] = fsdp_test_rank();
            }
            assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, values, count, FSDP_I32, FSDP_MAX, &request));
            assert_int_equal(FSDP_OK, fsdp_wait(request));
            assert_int_equal(fsdp_test_size() - 1, values[count - 1]);
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* ---- FSDP_PROGRESS_CPU ---------------------------------------------------------------------------------------------- */

static void a_number_that_cannot_be_had_is_refused_on_every_rank(void **state)
{
    fsdp_context *ctx;
    fsdp_mask     mine;

    (void)state;
    assert_true(fsdpi_mask_now(&mine));
    if (fsdp_mask_has(&mine, FSDPI_MASK_BITS - 1)) {
        skip();
    }
    const int wanted = fsdp_test_rank() == 0 ? FSDPI_MASK_BITS - 1 : FSDP_CPU_AUTO;
    assert_int_equal(FSDP_ERR_ARG, open_context(FSDP_PROGRESS_AUTO, wanted, &ctx));
    assert_says(NULL, "FSDP_PROGRESS_CPU is 4095, which is not among the hardware threads");
}

static void two_ranks_cannot_have_the_same(void **state)
{
    fsdp_context *ctx;

    (void)state;
    if (fsdp_test_size() < 2 || !go_to_one_core()) {
        skip();
    }
    assert_int_equal(FSDP_ERR_ARG, open_context(FSDP_PROGRESS_AUTO, first_of_rank_0(), &ctx));
    assert_says(NULL, "asks for it too");
}

static void a_thread_with_a_core_of_its_own_never_naps(void **state)
{
    fsdp_context *ctx;
    fsdp_request *request;
    float         value = 1;
    cpu_set_t     set;

    (void)state;
    if (!go_to_one_core()) {
        skip();
    }
    const int cpu = first_of_rank_0();
    assert_int_equal(FSDP_OK, open_context(FSDP_PROGRESS_AUTO, fsdp_test_rank() == 0 ? cpu : FSDP_CPU_NONE, &ctx));
    const bool mine = fsdp_test_rank() == 0 && ctx->queue.has_thread;
    assert_int_equal(mine, ctx->queue.own_core.has);
    if (mine) {
        assert_int_equal(0, pthread_getaffinity_np(ctx->queue.thread, sizeof set, &set));
        assert_int_equal(1, CPU_COUNT(&set));
        assert_true(CPU_ISSET((size_t)cpu, &set));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    atomic_store(&naps, 0);
    if (fsdp_test_rank() != 0) {
        const struct timespec some = {.tv_nsec = 10000000};
        (void)__real_nanosleep(&some, NULL);
    }
    assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_SUM, &request));
    while (mine && atomic_load(&request->state) != FSDPI_REQUEST_DONE) { /* the thread does it alone */
        (void)__real_sched_yield();
    }
    assert_true(!mine || atomic_load(&naps) == 0);
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    assert_true(value == (float)fsdp_test_size());
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* The thread's own time stands still here while the clock goes on, as if others had the core. */
static void a_core_that_others_use_is_given_up(void **state)
{
    fsdp_context *ctx;
    fsdp_request *request;
    float         value = 1;
    cpu_set_t     set, here;

    (void)state;
    if (!go_to_one_core()) {
        skip();
    }
    const int cpu = first_of_rank_0();
    assert_int_equal(FSDP_OK, open_context(FSDP_PROGRESS_AUTO, fsdp_test_rank() == 0 ? cpu : FSDP_CPU_NONE, &ctx));
    if (fsdp_test_rank() == 0 && ctx->queue.has_thread) {
        assert_int_equal(0, sched_setaffinity(0, sizeof before, &before));
        ctx->queue.own_core.was_asked_for = false;
        atomic_store(&made_up, true);
        atomic_store(&naps, 0);
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_SUM, &request));
        while (ctx->queue.own_core.has || atomic_load(&naps) == 0) { /* which the thread comes to alone */
            (void)__real_sched_yield();
        }
        assert_int_equal(0, pthread_getaffinity_np(ctx->queue.thread, sizeof set, &set));
        assert_int_equal(0, sched_getaffinity(0, sizeof here, &here));
        assert_true(CPU_EQUAL(&set, &here));
    } else if (fsdp_test_rank() == 0) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_SUM, &request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() != 0) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_SUM, &request));
    }
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    assert_true(value == (float)fsdp_test_size());
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ranks_that_take_turns_know_it, restore),
        cmocka_unit_test_teardown(they_give_way_for_no_longer_than_one_rank_would, restore),
        cmocka_unit_test_teardown(who_waits_does_not_nap_while_mpi_is_at_work, restore),
        cmocka_unit_test_teardown(a_number_that_cannot_be_had_is_refused_on_every_rank, restore),
        cmocka_unit_test_teardown(two_ranks_cannot_have_the_same, restore),
        cmocka_unit_test_teardown(a_thread_with_a_core_of_its_own_never_naps, restore),
        cmocka_unit_test_teardown(a_core_that_others_use_is_given_up, restore),
    };
    static const struct CMUnitTest under_quota[] = {
        cmocka_unit_test(a_quota_is_shared_as_cores_are),
        cmocka_unit_test_teardown(they_give_way_for_no_longer_than_one_rank_would, restore),
    };

    return argc > 1 && strcmp(argv[1], "quota") == 0 ? fsdp_test_main(argc, argv, under_quota, remember_cores, NULL)
                                                     : fsdp_test_main(argc, argv, tests, remember_cores, NULL);
}
