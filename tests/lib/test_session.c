/**
 * @file
 * A context on a communicator of an MPI session (MPI 4), in a program that never calls MPI_Init(): neither MPI_COMM_WORLD nor
 * MPI_COMM_SELF exists.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "fsdp/model.h"
#include "tests/support/mpi_test.h"

#if MPI_VERSION >= 4

enum { ELEMENTS = 300007, PARAMETERS = 1000 };

static MPI_Comm comm;

static void mpi_has_no_world(void **state)
{
    int initialized = 1;

    (void)state;
    MPI_Initialized(&initialized);
    assert_false(initialized);
}

static void the_world_is_refused(void **state)
{
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_ERR_STATE, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_says(NULL, "MPI is not running");
}

static void sum_is_right(fsdp_context *ctx, int32_t *values, size_t count)
{
    const int32_t n = fsdp_size(ctx);
    fsdp_request *request;

    for (size_t i = 0; i < count; i++) {
        values[i] = fsdp_rank(ctx) + (int32_t)(i % 5);
    }
    assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, values, count, FSDP_I32, FSDP_SUM, &request));
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(n * (n - 1) / 2 + n * (int32_t)(i % 5), values[i]);
    }
}

static void a_model_is_made(fsdp_context *ctx)
{
    const fsdp_tensor tensor = {.name = "w", .dtype = FSDP_F32, .n_dims = 1, .shape = {PARAMETERS}};
    fsdp_model       *model;
    fsdp_unit        *unit;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
    fsdp_model_destroy(model);
}

/* On one node, then with a node for each rank; on a thread where the session allows it, and inside calls. */
static void a_context_works(void **state)
{
    static int32_t values[ELEMENTS];

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        fsdp_config   config;
        fsdp_context *ctx;
        void         *buffer;
        int           size;

        fsdp_config_init(&config);
        config.node_size = kind / 2;
        config.progress  = kind % 2 == 0 ? FSDP_PROGRESS_INLINE : FSDP_PROGRESS_AUTO;
        assert_int_equal(FSDP_OK, fsdp_init(comm, &config, &ctx));
        MPI_Comm_size(comm, &size);
        assert_int_equal(kind % 2 == 1 && size > 1, fsdp_has_progress_thread(ctx));
        assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, sizeof values, &buffer));
        sum_is_right(ctx, values, 3);
        sum_is_right(ctx, values, ELEMENTS);
        sum_is_right(ctx, buffer, ELEMENTS);
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, buffer));
        a_model_is_made(ctx);
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

static int run(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpi_has_no_world),
        cmocka_unit_test(the_world_is_refused),
        cmocka_unit_test(a_context_works),
    };
    int rank;

    MPI_Comm_rank(comm, &rank);
    if (rank != 0 && freopen("/dev/null", "w", stdout) == NULL) {
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(void)
{
    MPI_Session session;
    MPI_Group   group;
    MPI_Info    info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "libfsdp.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    const int status = run();
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return status;
}

#else

int main(int argc, char **argv)
{
    return fsdp_test_skip(argc, argv, "this MPI has no sessions, which came with MPI 4");
}

#endif
