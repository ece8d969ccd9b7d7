/**
 * @file
 * MPI_Finalize() before fsdp_finalize(): operations are completed, and from then on everything is an error, nothing a crash.
 * MPI ends once in a program, so that what is there before is made by main().
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "fsdp/model.h"
#include "tests/support/mpi_test.h"

enum { ELEMENTS = 300007, N_PROGRESS = 2, PARAMETERS = 1000 };

/* A context with an operation under way, a model and a buffer. */
typedef struct left_open {
    fsdp_context *ctx;
    fsdp_request *request;
    float        *sum;
    fsdp_model   *model;
    float        *buffer;
} left_open;

static left_open     all[N_PROGRESS];
static fsdp_context *idle;

/* A context in which the first rank alone has begun something. */
static struct {
    fsdp_context *ctx;
    fsdp_request *request;
    float         value;
} deserted;

static fsdp_status make_model(left_open *one)
{
    const fsdp_tensor tensor = {.name = "w", .dtype = FSDP_F32, .n_dims = 1, .shape = {PARAMETERS}};
    fsdp_unit        *unit;
    fsdp_status       status = fsdp_model_create(one->ctx, NULL, &one->model);

    status = status == FSDP_OK ? fsdp_unit_add(one->model, "u", &tensor, 1, &unit) : status;
    return status == FSDP_OK ? fsdp_model_commit(one->model) : status;
}

static bool open_one(left_open *one, int progress)
{
    fsdp_config config;
    void       *buffer;

    fsdp_config_init(&config);
    config.progress  = progress;
    config.log_level = FSDP_LOG_OFF;
    one->sum         = malloc(ELEMENTS * sizeof *one->sum);
    if (one->sum == NULL || fsdp_init(MPI_COMM_WORLD, &config, &one->ctx) != FSDP_OK || make_model(one) != FSDP_OK ||
        fsdp_buffer_alloc(one->ctx, FSDP_BUFFER_PER_RANK, 100, &buffer) != FSDP_OK) {
        return false;
    }
    one->buffer = buffer;
    for (size_t i = 0; i < ELEMENTS; i++) {
        one->sum[i] = (float)(i % 7);
    }
    return fsdp_iallreduce(one->ctx, FSDP_IN_PLACE, one->sum, ELEMENTS, FSDP_F32, FSDP_SUM, &one->request) == FSDP_OK;
}

static int rank, ranks;

static bool open_deserted(void)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    config.timeout_s = 1;
    if (fsdp_init(MPI_COMM_WORLD, &config, &deserted.ctx) != FSDP_OK) {
        return false;
    }
    return rank > 0 || fsdp_iallreduce(deserted.ctx, FSDP_IN_PLACE, &deserted.value, 1, FSDP_F32, FSDP_SUM,
                                       &deserted.request) == FSDP_OK;
}

static void an_operation_under_way_was_completed(void **state)
{
    (void)state;
    for (int c = 0; c < N_PROGRESS; c++) {
        assert_int_equal(FSDP_OK, fsdp_wait(all[c].request));
        for (size_t i = 0; i < ELEMENTS; i++) {
            assert_true(all[c].sum[i] == (float)(i % 7) * (float)ranks);
        }
    }
}

static void an_operation_that_no_other_rank_began_has_timed_out(void **state)
{
    (void)state;
    if (rank == 0) {
        assert_int_equal(ranks > 1 ? FSDP_ERR_TIMEOUT : FSDP_OK, fsdp_wait(deserted.request));
    }
    assert_int_not_equal(FSDP_OK, fsdp_finalize(deserted.ctx));
}

static void no_context_can_be_used_or_opened(void **state)
{
    fsdp_request *request;
    fsdp_context *another;
    fsdp_model   *model;
    void         *buffer;
    float         value = 1;

    (void)state;
    assert_int_equal(FSDP_ERR_STATE, fsdp_allreduce(idle, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_STATE, fsdp_ibarrier(idle, &request));
    assert_int_equal(FSDP_ERR_STATE, fsdp_buffer_alloc(idle, FSDP_BUFFER_PER_RANK, 100, &buffer));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_create(idle, NULL, &model));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_commit(all[0].model));
    assert_int_equal(FSDP_ERR_STATE, fsdp_init(MPI_COMM_WORLD, NULL, &another));
}

static void memory_and_models_can_be_released(void **state)
{
    (void)state;
    fsdp_model_destroy(all[0].model);
    all[0].buffer[0] = 1;
    assert_int_equal(FSDP_ERR_STATE, fsdp_buffer_free(all[0].ctx, all[0].buffer));
    for (int c = 0; c < N_PROGRESS; c++) {
        assert_int_equal(FSDP_ERR_STATE, fsdp_finalize(all[c].ctx));
        assert_non_null(strstr(fsdp_last_error(NULL), "MPI_Finalize"));
        free(all[c].sum);
    }
    assert_int_equal(FSDP_ERR_STATE, fsdp_finalize(idle));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_under_way_was_completed),
        cmocka_unit_test(an_operation_that_no_other_rank_began_has_timed_out),
        cmocka_unit_test(no_context_can_be_used_or_opened),
        cmocka_unit_test(memory_and_models_can_be_released),
    };
    static const int progress[N_PROGRESS] = {FSDP_PROGRESS_THREAD, FSDP_PROGRESS_INLINE};
    fsdp_config      quiet;
    int              provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fsdp_config_init(&quiet);
    quiet.log_level = FSDP_LOG_OFF;
    for (int c = 0; c < N_PROGRESS; c++) {
        if (!open_one(&all[c], provided == MPI_THREAD_MULTIPLE ? progress[c] : FSDP_PROGRESS_INLINE)) {
            return EXIT_FAILURE;
        }
    }
    if (fsdp_init(MPI_COMM_WORLD, &quiet, &idle) != FSDP_OK || !open_deserted()) {
        return EXIT_FAILURE;
    }
    MPI_Finalize();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
