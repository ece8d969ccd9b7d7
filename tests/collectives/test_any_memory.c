/** @file Wherever the buffers of a call lie, at odd addresses or in memory that nobody else may read, the bits are the same. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fsdp/algorithms.h"
#include "tests/collectives/collective_test.h"

typedef enum collective { ALLGATHER, REDUCE_SCATTER, ALLREDUCE, BROADCAST, REDUCE, ALLTOALL } collective;
enum { N_COLLECTIVES = 6, MOST_RANKS = 8, N_REGIONS = 2 };

static fsdp_context *ctx;

/* `count`: as the collective takes it. */
typedef struct job {
    collective collective;
    size_t     count;
    fsdp_dtype dtype;
    fsdp_redop op;
} job;

/* ---- memory that nobody else may read ------------------------------------------------------------------------------ */

/* Of each rank: the linker gives calls of process_vm_readv() to what refuses these, as the system does secret memory. */
typedef struct region {
    long      pid;
    uintptr_t begin, end;
} region;

static region   closed[MOST_RANKS][N_REGIONS];
static unsigned refused;

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                unsigned long n_there, unsigned long flags);
ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                unsigned long n_there, unsigned long flags);

static bool is_closed(pid_t pid, const struct iovec *there)
{
    const uintptr_t begin = (uintptr_t)there->iov_base, end = begin + there->iov_len;

    for (int r = 0; r < MOST_RANKS; r++) {
        for (int i = 0; i < N_REGIONS; i++) {
            if (closed[r][i].pid == (long)pid && begin < closed[r][i].end && closed[r][i].begin < end) {
                return true;
            }
        }
    }
    return false;
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                unsigned long n_there, unsigned long flags)
{
    for (unsigned long i = 0; i < n_there; i++) {
        if (is_closed(pid, &there[i])) {
            refused++;
            errno = EFAULT;
            return -1;
        }
    }
    return __real_process_vm_readv(pid, here, n_here, there, n_there, flags);
}

/* Collective. NULL: of this rank everything may be read. */
static void close_region(int number, const void *memory, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)memory;
    const region    mine  = {.pid = memory != NULL ? (long)getpid() : 0, .begin = begin, .end = begin + bytes};
    region          all[MOST_RANKS];

    MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < fsdp_size(ctx); r++) {
        closed[r][number] = all[r];
    }
}

/* ---- jobs ---------------------------------------------------------------------------------------------------------- */

static size_t whole_count(const job *j)
{
    const bool per_rank = j->collective == ALLGATHER || j->collective == REDUCE_SCATTER || j->collective == ALLTOALL;

    return per_rank ? j->count * (size_t)fsdp_size(ctx) : j->count;
}

static size_t input_count(const job *j)
{
    return j->collective == ALLGATHER ? j->count : whole_count(j);
}

static size_t output_count(const job *j)
{
    return j->collective == REDUCE_SCATTER ? j->count : whole_count(j);
}

static fsdp_status call(const job *j, const void *in, void *out)
{
    switch (j->collective) {
    case ALLGATHER:
        return fsdp_allgather(ctx, in, out, j->count, j->dtype);
    case REDUCE_SCATTER:
        return fsdp_reduce_scatter(ctx, in, out, j->count, j->dtype, j->op);
    case ALLREDUCE:
        return fsdp_allreduce(ctx, in, out, j->count, j->dtype, j->op);
    case BROADCAST:
        return fsdp_broadcast(ctx, out, j->count, j->dtype, 0);
    case REDUCE:
        return fsdp_reduce(ctx, in, out, j->count, j->dtype, j->op, 0);
    case ALLTOALL:
        return fsdp_alltoall(ctx, in, out, j->count, j->dtype);
    }
    return FSDP_ERR_ARG;
}

/* The same elements again and again: to make many different ones takes longer than what is tested. */
static void make_input(const job *j, unsigned char *input)
{
    const size_t width = fsdp_dtype_size(j->dtype), count = input_count(j), period = count < 1009 ? count : 1009;

    contribute(input, fsdp_rank(ctx), 0, period, j->dtype);
    for (size_t done = period; done < count; done += period) {
        memcpy(input + done * width, input, (count - done < period ? count - done : period) * width);
    }
}

/* From `in` to `out`, which is as the input first where the collective has one buffer, and else nothing in particular. */
static void carry_out(const job *j, const unsigned char *input, unsigned char *in, unsigned char *out)
{
    const size_t width = fsdp_dtype_size(j->dtype);

    memset(out, 0, output_count(j) * width);
    memcpy(j->collective == BROADCAST ? out : in, input, input_count(j) * width);
    assert_int_equal(FSDP_OK, call(j, in, out));
}

/* ---- odd addresses ------------------------------------------------------------------------------------------------- */

static void check_offset(const job *j, size_t offset)
{
    const size_t   width    = fsdp_dtype_size(j->dtype);
    const size_t   in_bytes = input_count(j) * width, out_bytes = output_count(j) * width;
    unsigned char *input = malloc(in_bytes + 1), *in = malloc(in_bytes + 64), *out = malloc(out_bytes + 64);
    unsigned char *expected = malloc(out_bytes + 1);

    assert_true(input != NULL && in != NULL && out != NULL && expected != NULL);
    make_input(j, input);
    carry_out(j, input, in, expected);
    carry_out(j, input, in + offset, out + offset);
    assert_memory_equal(expected, out + offset, out_bytes);
    free(input);
    free(in);
    free(out);
    free(expected);
}

/* Short ones; and so long that results go past the caches. */
static void check_offsets(fsdp_dtype dtype, fsdp_redop op, size_t offset)
{
    for (int c = 0; c < N_COLLECTIVES; c++) {
        check_offset(&(job){(collective)c, 1009, dtype, op}, offset);
    }
    const size_t elements = ((size_t)9 << 20) / fsdp_dtype_size(dtype);
    check_offset(&(job){ALLREDUCE, elements / 2, dtype, op}, offset);
    check_offset(&(job){REDUCE_SCATTER, elements / (size_t)fsdp_size(ctx), dtype, op}, offset);
    check_offset(&(job){ALLGATHER, elements / (size_t)fsdp_size(ctx), dtype, op}, offset);
}

static void buffers_at_odd_addresses_are_served(void **state)
{
    (void)state;
    check_offsets(FSDP_F64, FSDP_SUM, 4);
    check_offsets(FSDP_F32, FSDP_AVG, 1);
    check_offsets(FSDP_I64, FSDP_AVG, 3);
    check_offsets(FSDP_BF16, FSDP_SUM, 1);
}

/* ---- memory that peers cannot read ----------------------------------------------------------------------------------- */

enum { ELEMENTS = 70001 };

/* Pages of their own, which allocators do not use for anything else. */
static unsigned char *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(MAP_FAILED, memory);
    return memory;
}

/* `in_closed`, `out_closed`: of this rank. The memory is used before it is closed, and after it was. */
static void check_closed(const job *j, bool in_closed, bool out_closed)
{
    const size_t   width    = fsdp_dtype_size(j->dtype);
    const size_t   in_bytes = input_count(j) * width, out_bytes = output_count(j) * width;
    unsigned char *input = malloc(in_bytes), *expected = malloc(out_bytes);
    unsigned char *in = map(in_bytes), *out = map(out_bytes);

    assert_true(input != NULL && expected != NULL);
    make_input(j, input);
    close_region(0, in_closed ? in : NULL, in_bytes);
    close_region(1, out_closed ? out : NULL, out_bytes);
    carry_out(j, input, in, out);
    memcpy(expected, out, out_bytes);
    close_region(0, NULL, 0);
    close_region(1, NULL, 0);
    carry_out(j, input, in, out);
    if (j->collective != REDUCE || fsdp_rank(ctx) == 0) {
        assert_memory_equal(expected, out, out_bytes);
    }
    free(input);
    free(expected);
    assert_int_equal(0, munmap(in, in_bytes));
    assert_int_equal(0, munmap(out, out_bytes));
}

static void check_all_closed(bool in_closed, bool out_closed)
{
    for (int c = 0; c < N_COLLECTIVES; c++) {
        check_closed(&(job){(collective)c, ELEMENTS, FSDP_F32, FSDP_SUM}, in_closed, out_closed);
    }
}

static void memory_of_one_rank_that_peers_cannot_read_is_copied(void **state)
{
    const int last = fsdp_size(ctx) - 1;

    (void)state;
    check_all_closed(fsdp_rank(ctx) == last, false);
    check_all_closed(false, fsdp_rank(ctx) == 0);
}

static void memory_of_all_ranks_that_peers_cannot_read_is_copied(void **state)
{
    (void)state;
    check_all_closed(true, true);
}

/* Else the tests above would show nothing. */
static void memory_that_peers_can_read_is_read(void **state)
{
    (void)state;
    if (fsdp_node_count(ctx) > 1 || fsdp_size(ctx) == 1) {
        skip();
    }
    refused = 0;
    check_closed(&(job){ALLGATHER, ELEMENTS, FSDP_F32, FSDP_SUM}, false, false);
    assert_string_equal("cma", fsdp_last_algorithm(ctx));
    assert_int_equal(0, refused);
    check_closed(&(job){ALLGATHER, ELEMENTS, FSDP_F32, FSDP_SUM}, true, false);
    assert_true(refused > 0);
}

static int open_context(void **state)
{
    (void)state;
    return fsdp_init(MPI_COMM_WORLD, NULL, &ctx) == FSDP_OK ? 0 : -1;
}

/* Each collective reads its peers' memory, where there is a way. */
static int open_to_read(void **state)
{
    fsdp_config config;

    (void)state;
    fsdp_config_init(&config);
    config.algo_allgather      = FSDP_ALGO_CMA;
    config.algo_reduce_scatter = FSDP_ALGO_CMA;
    config.algo_allreduce      = FSDP_ALGO_CMA;
    config.algo_broadcast      = FSDP_ALGO_CMA;
    config.algo_reduce         = FSDP_ALGO_CMA;
    config.algo_alltoall       = FSDP_ALGO_CMA;
    return fsdp_init(MPI_COMM_WORLD, &config, &ctx) == FSDP_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    return fsdp_finalize(ctx) == FSDP_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(buffers_at_odd_addresses_are_served, open_context, close_context),
        cmocka_unit_test_setup_teardown(buffers_at_odd_addresses_are_served, open_to_read, close_context),
        cmocka_unit_test_setup_teardown(memory_of_one_rank_that_peers_cannot_read_is_copied, open_to_read,
                                        close_context),
        cmocka_unit_test_setup_teardown(memory_of_all_ranks_that_peers_cannot_read_is_copied, open_to_read,
                                        close_context),
        cmocka_unit_test_setup_teardown(memory_that_peers_can_read_is_read, open_to_read, close_context),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
