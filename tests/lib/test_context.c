#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "fsdp/context.h"
#include "lib/base/doing.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/context/init.h"
#include "tests/support/mpi_test.h"

static void null_and_inter_communicators_are_refused(void **state)
{
    fsdp_context *ctx = (fsdp_context *)state;

    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_NULL, NULL, &ctx));
    assert_null(ctx);
    assert_non_null(strstr(fsdp_last_error(NULL), "MPI_COMM_NULL"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_WORLD, NULL, NULL));

    if (fsdp_test_size() > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, fsdp_test_rank() > 0, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, fsdp_test_rank() > 0 ? 0 : 1, 1, &inter);
        assert_int_equal(FSDP_ERR_ARG, fsdp_init(inter, NULL, &ctx));
        assert_non_null(strstr(fsdp_last_error(NULL), "inter-communicator"));
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
}

static void fortran_handles_are_taken(void **state)
{
    fsdp_context *ctx = (fsdp_context *)state;
    MPI_Comm      pair;

    MPI_Comm_split(MPI_COMM_WORLD, fsdp_test_rank() / 2, 0, &pair);
    assert_int_equal(FSDP_OK, fsdp_init_f(MPI_Comm_c2f(pair), NULL, &ctx));
    assert_int_equal(fsdp_test_rank() % 2, fsdp_rank(ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    MPI_Comm_free(&pair);

    assert_int_equal(FSDP_ERR_ARG, fsdp_init_f(MPI_Comm_c2f(MPI_COMM_NULL), NULL, &ctx));
    assert_null(ctx);
    assert_non_null(strstr(fsdp_last_error(NULL), "MPI_COMM_NULL"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_init_f(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, NULL));
#ifdef OPEN_MPI /* MPICH calls the error handler */
    assert_int_equal(FSDP_ERR_ARG, fsdp_init_f(123456, NULL, &ctx));
    assert_non_null(strstr(fsdp_last_error(NULL), "123456"));
#endif
}

static void rank_and_size_are_those_of_the_communicator(void **state)
{
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(fsdp_test_rank(), fsdp_rank(ctx));
    assert_int_equal(fsdp_test_size(), fsdp_size(ctx));
    assert_string_equal("", fsdp_last_error(ctx));
    assert_true(fsdp_wait_seconds(ctx) >= 0.0);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_int_equal(-1, fsdp_rank(NULL));
    assert_int_equal(-1, fsdp_size(NULL));
    assert_int_equal(FSDP_OK, fsdp_finalize(NULL));
}

static void several_contexts_live_side_by_side(void **state)
{
    fsdp_context *world, *half;
    MPI_Comm      comm;
    int32_t       in_world = 1, in_half = 1;

    (void)state;
    MPI_Comm_split(MPI_COMM_WORLD, fsdp_test_rank() % 2, -fsdp_test_rank(), &comm);
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &world));
    assert_int_equal(FSDP_OK, fsdp_init(comm, NULL, &half));
    MPI_Comm_free(&comm); /* the context has its own */
    assert_int_equal(FSDP_OK, fsdp_allreduce(half, FSDP_IN_PLACE, &in_half, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_OK, fsdp_allreduce(world, FSDP_IN_PLACE, &in_world, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(fsdp_size(half), in_half);
    assert_int_equal(fsdp_test_size(), in_world);
    assert_int_equal(FSDP_OK, fsdp_finalize(world));
    assert_int_equal(FSDP_OK, fsdp_finalize(half));
}

static void the_error_handler_of_the_caller_is_left_alone(void **state)
{
    MPI_Errhandler before, after;
    fsdp_context  *ctx;

    (void)state;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    assert_true(before == after);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_setting_that_differs_between_ranks_is_refused_everywhere(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    fsdp_config_init(&config);
    config.timeout_s = fsdp_test_rank() == 1 ? 31 : 30;
    config.verify    = FSDP_VERIFY_FULL; /* the same on all, and therefore not named */
    assert_int_equal(FSDP_ERR_MISMATCH, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_null(ctx);
    assert_string_equal("rank 0 has FSDP_TIMEOUT_S=30, but rank 1 has FSDP_TIMEOUT_S=31; give all ranks the same",
                        fsdp_last_error(NULL));
}

static void a_bad_setting_on_one_rank_is_refused_everywhere(void **state)
{
    const int     last = fsdp_test_rank() == fsdp_test_size() - 1;
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.views_in_flight = last ? -7 : 2;
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_non_null(strstr(fsdp_last_error(NULL), "views_in_flight is -7"));
    config.views_in_flight = 2;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Two bad settings in one line. */
static void a_bad_setting_on_all_ranks_is_printed_once(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;
    char          all[32] = "";

    (void)state;
    fsdp_config_init(&config);
    config.views_in_flight = -7;
    config.message_bytes   = 1;
    fsdp_test_capture_stderr();
    const fsdp_status status  = fsdp_init(MPI_COMM_WORLD, &config, &ctx);
    const int         printed = fsdp_test_times_printed("views_in_flight is -7");
    assert_int_equal(FSDP_ERR_ARG, status);
    assert_int_equal(1, printed);
    (void)snprintf(all, sizeof all, "all %d ranks: ", fsdp_test_size());
    assert_says(NULL, fsdp_test_size() > 1 ? all : "rank 0: ");
    assert_says(NULL, "views_in_flight is -7; it accepts");
    assert_says(NULL, "message_bytes is 1; it accepts");
}

/* The root is wrong on all ranks alike, on one, or on each in another way. */
static void a_bad_argument_is_printed_as_often_as_it_differs(void **state)
{
    const int     last  = fsdp_test_size() - 1;
    int32_t       value = 1;
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    fsdp_test_capture_stderr();
    fsdp_status status = fsdp_broadcast(ctx, &value, 1, FSDP_I32, -5);
    assert_int_equal(1, fsdp_test_times_printed("fsdp_broadcast: root -5 is no rank"));
    assert_int_equal(FSDP_ERR_ARG, status);

    fsdp_test_capture_stderr();
    status = fsdp_broadcast(ctx, &value, 1, FSDP_I32, fsdp_test_rank() == last ? -6 : 0);
    assert_int_equal(1, fsdp_test_times_printed("fsdp_broadcast: root -6 is no rank"));
    assert_int_equal(FSDP_ERR_ARG, status);

    fsdp_test_capture_stderr();
    status = fsdp_broadcast(ctx, &value, 1, FSDP_I32, -7 - fsdp_test_rank());
    assert_int_equal(fsdp_test_size(), fsdp_test_times_printed("is no rank"));
    assert_int_equal(FSDP_ERR_ARG, status);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void an_instruction_set_of_another_processor_is_refused_by_name(void **state)
{
#ifdef __aarch64__
    enum { OTHER = FSDP_ISA_AVX2 };
    const char *const said = "FSDP_ISA is 'avx2'";
#else
    enum { OTHER = FSDP_ISA_NEON };
    const char *const said = "FSDP_ISA is 'neon'";
#endif
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.isa       = OTHER;
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_non_null(strstr(fsdp_last_error(NULL), said));
}

/* By name, and without the arguments that the source gives it. */
static void a_failure_of_mpi_names_the_function(void **state)
{
    (void)state;
    assert_int_equal(FSDP_ERR_MPI, fsdpi_fail_mpi(NULL, MPI_ERR_TAG, "MPI_Isend(data, (int)bytes, MPI_BYTE)"));
    assert_memory_equal("MPI_Isend failed: ", fsdp_last_error(NULL), strlen("MPI_Isend failed: "));
    const char *before = fsdpi_doing("fsdp_init");
    assert_int_equal(FSDP_ERR_MPI, fsdpi_fail_mpi(NULL, MPI_ERR_TAG, "fsdpi_mpi_barrier(ctx->comm, timeout_s)"));
    (void)fsdpi_doing(before);
    assert_memory_equal("MPI in fsdp_init failed: ", fsdp_last_error(NULL), strlen("MPI in fsdp_init failed: "));
}

static bool is_refused(const fsdp_context *ctx, fsdp_status status)
{
    char words[80];

    (void)snprintf(words, sizeof words, "made by fork(), and the context is that of process %d", (int)getppid());
    return status == FSDP_ERR_STATE && strstr(fsdp_last_error(ctx), words) != NULL;
}

/* In the process that fork() has made, which ends here: with the number of the first call that is not refused, or 0. */
static void use_in_child(fsdp_context *ctx, fsdp_request *request)
{
    enum { SECONDS = 60 };
    int32_t       value = 1;
    int           done, failed;
    void         *memory;
    fsdp_request *other;

    (void)alarm(SECONDS); /* where a call waits after all */
    failed = !is_refused(ctx, fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM)) ? 1
             : !is_refused(ctx, fsdp_ibarrier(ctx, &other))                                      ? 2
             : !is_refused(ctx, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, 64, &memory))       ? 3
             : request != NULL && !is_refused(ctx, fsdp_test(request, &done))                    ? 4
             : request != NULL && !is_refused(ctx, fsdp_wait(request))                           ? 5
             : !is_refused(ctx, fsdp_finalize(ctx))                                              ? 6
                                                                                                 : 0;
    (void)fflush(NULL); /* as exit() does */
    _exit(failed);
}

static int count_words(const char *path, const char *words)
{
    FILE *file = fopen(path, "r");
    char  line[1024];
    int   n = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        n += strstr(line, words) != NULL;
    }
    assert_int_equal(0, fclose(file));
    return n;
}

/* While an operation is under way that waits for the last rank; and the trace is written once. */
static void a_fork_cannot_use_the_context_and_does_not_harm_it(void **state)
{
    const int     last  = fsdp_test_size() - 1;
    int32_t       value = 1;
    int           status;
    char          prefix[64], path[96];
    fsdp_config   config;
    fsdp_context *ctx;
    fsdp_request *request = NULL;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    config.trace     = prefix;
    (void)snprintf(prefix, sizeof prefix, "/tmp/fsdp-fork-%d", (int)getpid());
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    (void)snprintf(path, sizeof path, "%s.%d.json", prefix, fsdp_test_rank());
    if (fsdp_test_rank() != last) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM, &request));
    }
    const pid_t child = fork();
    if (child == 0) {
        use_in_child(ctx, request);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    if (request == NULL) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM, &request));
    }
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    assert_int_equal(fsdp_test_size(), value);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_int_equal(1, count_words(path, "process_name"));
    assert_int_equal(0, unlink(path));
}

/* Across nodes an alltoall in place needs memory of its own meanwhile. */
static fsdp_context *context_of_nodes_of_one(void)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static void memory_is_counted_to_the_byte(void **state)
{
    fsdp_context *ctx = context_of_nodes_of_one();
    fsdp_memory   before, held, after;
    size_t        sum = 0;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &before));
    assert_int_equal((size_t)6 << 20, before.current[FSDP_MEMORY_STAGING]); /* of both lanes */
    assert_int_equal(fsdpi_context_bookkeeping(fsdp_size(ctx), ctx->config.record),
                     before.current[FSDP_MEMORY_BOOKKEEPING]);
    for (int kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        sum += before.current[kind];
    }
    assert_int_equal(sum, before.current_total);

    int64_t      *blocks = calloc((size_t)fsdp_size(ctx) * 1000, sizeof *blocks);
    fsdp_request *request;
    assert_int_equal(FSDP_OK, fsdp_ialltoall(ctx, FSDP_IN_PLACE, blocks, 1000, FSDP_I64, &request));
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &held));
    if (fsdp_size(ctx) > 1) {
        assert_true(held.peak_total >= before.current_total + (size_t)fsdp_size(ctx) * 8000);
    }
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &after));
    assert_int_equal(before.current_total, after.current_total);
    free(blocks);
    assert_int_equal(FSDP_ERR_ARG, fsdp_memory_usage(ctx, NULL));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* What grows with the ranks is in the memory that they share, and its BYTES are counted by each. */
static void which_rank_is_where_is_kept_once_per_node(void **state)
{
    fsdp_context *ctx;
    fsdp_memory   memory;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    const unsigned char *begin = ctx->lanes[0].box.segment.base, *map = ctx->nodes.memory;
    assert_true(map >= begin && map + fsdpi_nodes_bytes(fsdp_size(ctx)) <= begin + ctx->lanes[0].box.segment.bytes);
    for (int r = 0; r < fsdp_size(ctx); r++) {
        assert_int_equal(r,
                         fsdpi_rank_at(&ctx->nodes, fsdpi_node_of(&ctx->nodes, r), fsdpi_position_of(&ctx->nodes, r)));
    }
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
    assert_int_equal(fsdpi_context_bookkeeping(fsdp_size(ctx), ctx->config.record),
                     memory.current[FSDP_MEMORY_BOOKKEEPING]);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static int allocations_left;

static void *failing_alloc(size_t bytes)
{
    return allocations_left-- > 0 ? fsdpi_device_host.alloc(bytes) : NULL;
}

/* Of more than two ranks each needs memory for its part, but the root. */
static void reduce_without_memory(fsdp_context *ctx)
{
    enum { COUNT = 640 };
    int32_t in[COUNT] = {1}, out[COUNT] = {7};

    assert_int_equal(fsdp_test_size() > 2 ? FSDP_ERR_MEMORY : FSDP_OK,
                     fsdp_reduce(ctx, in, out, COUNT, FSDP_I32, FSDP_SUM, 0));
    assert_int_equal(fsdp_test_size() > 2 || fsdp_test_rank() > 0 ? 7 : fsdp_test_size(), out[0]);
}

/* A device that runs out of memory on the last rank only: an error on every rank, outputs untouched. */
static void no_memory_on_one_rank_is_an_error_on_every_rank(void **state)
{
    fsdpi_device device     = fsdpi_device_host;
    int32_t      blocks[64] = {0};

    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    fsdp_context *ctx = context_of_nodes_of_one();
    device.alloc      = failing_alloc;
    allocations_left  = fsdp_test_rank() == fsdp_test_size() - 1 ? 0 : 100;
    ctx->device       = &device;
    blocks[0]         = 5;
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_alltoall(ctx, FSDP_IN_PLACE, blocks, 1, FSDP_I32));
    assert_non_null(strstr(fsdp_last_error(ctx), "no memory for"));
    assert_int_equal(5, blocks[0]);
    reduce_without_memory(ctx);
    ctx->device = &fsdpi_device_host;
    assert_int_equal(FSDP_OK, fsdp_alltoall(ctx, FSDP_IN_PLACE, blocks, 1, FSDP_I32));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_and_inter_communicators_are_refused),
        cmocka_unit_test(fortran_handles_are_taken),
        cmocka_unit_test(rank_and_size_are_those_of_the_communicator),
        cmocka_unit_test(several_contexts_live_side_by_side),
        cmocka_unit_test(the_error_handler_of_the_caller_is_left_alone),
        cmocka_unit_test(a_setting_that_differs_between_ranks_is_refused_everywhere),
        cmocka_unit_test(a_bad_setting_on_one_rank_is_refused_everywhere),
        cmocka_unit_test(a_bad_setting_on_all_ranks_is_printed_once),
        cmocka_unit_test(a_bad_argument_is_printed_as_often_as_it_differs),
        cmocka_unit_test(an_instruction_set_of_another_processor_is_refused_by_name),
        cmocka_unit_test(a_failure_of_mpi_names_the_function),
        cmocka_unit_test(a_fork_cannot_use_the_context_and_does_not_harm_it),
        cmocka_unit_test(memory_is_counted_to_the_byte),
        cmocka_unit_test(which_rank_is_where_is_kept_once_per_node),
        cmocka_unit_test(no_memory_on_one_rank_is_an_error_on_every_rank),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
