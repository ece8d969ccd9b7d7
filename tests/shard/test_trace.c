/* FSDP_TRACE: what is read back from the file, by eye of this test and by a JSON reader where there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shard/small_model.h"
#include "tests/shard/trace_file.h"

static char folder[] = "trace-XXXXXX";

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Three passes, the trace of which is read into `t`. `number`: how many contexts were traced before. */
static void train_traced(const fsdp_model_options *options, int prefetch, int number, traced *t)
{
    char        prefix[64], name[96], tail[16] = "";
    fsdp_config config;
    small_model m;

    fsdp_config_init(&config);
    (void)snprintf(prefix, sizeof prefix, "%s/t", folder);
    config.trace    = prefix;
    config.prefetch = prefetch;
    small_model_build(&m, MPI_COMM_WORLD, &config, options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    for (int pass = 0; pass < 3; pass++) {
        run_pass(&m, pass);
    }
    const int rank = fsdp_rank(m.ctx);
    small_model_close(&m);
    if (number > 0) {
        (void)snprintf(tail, sizeof tail, ".%d", number);
    }
    (void)snprintf(name, sizeof name, "%s.%d%s.json", prefix, rank, tail);
    read_trace(name, t);
    if (rank == 0 && system("command -v python3 >/dev/null") == 0) {
        char command[256];
        (void)snprintf(command, sizeof command, "python3 -c 'import json, sys; json.load(open(sys.argv[1]))' %s", name);
        assert_int_equal(0, system(command));
    }
    assert_int_equal(0, unlink(name));
}

static void a_trace_tells_what_is_gathered_ahead(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    static traced      t;

    (void)state;
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        train_traced(&options, prefetch, prefetch, &t);
        assert_int_equal(3, count_of(&t, "forward a"));
        assert_int_equal(3, count_of(&t, "backward c"));
        const event *pass   = last_of(&t, "forward a", NULL);
        const event *gather = last_of(&t, "allgather b", "fsdp_unit_begin_forward");
        assert_true((gather->issued < pass->begin + pass->length) == (prefetch == 1));
        assert_true(gather->issued <= gather->begin && gather->length >= 0);
        assert_int_equal(3, count_of(&t, "reduce_scatter a"));
    }
}

static void groups_write_into_the_same_trace(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    static traced      t;

    (void)state;
    options.strategy   = FSDP_HYBRID_SHARD;
    options.group_size = 1;
    train_traced(&options, 1, 2, &t);
    assert_int_equal(2, last_of(&t, "reduce_scatter a", NULL)->lane);
    if (fsdp_test_size() > 1) {
        assert_int_equal(3, last_of(&t, "allreduce a", NULL)->lane);
    }
}

static void a_trace_that_cannot_be_written_is_an_error_on_all_ranks(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    config.trace     = fsdp_test_rank() == fsdp_test_size() - 1 ? "no such folder/t" : "";
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_non_null(strstr(fsdp_last_error(NULL), "FSDP_TRACE: 'no such folder/t."));

    config.trace     = "no such folder/t";
    config.log_level = FSDP_LOG_ERROR;
    fsdp_test_capture_stderr();
    const fsdp_status status = fsdp_init(MPI_COMM_WORLD, &config, &ctx);
    assert_int_equal(1, fsdp_test_times_printed("FSDP_TRACE: 'no such folder/t.*.json' cannot be written"));
    assert_int_equal(FSDP_ERR_ARG, status);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const struct CMUnitTest trace[] = {
    cmocka_unit_test(a_trace_tells_what_is_gathered_ahead),
    cmocka_unit_test(groups_write_into_the_same_trace),
    cmocka_unit_test(a_trace_that_cannot_be_written_is_an_error_on_all_ranks),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, trace, make_folder, remove_folder);
}
