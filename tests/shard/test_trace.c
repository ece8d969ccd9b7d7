/* FSDP_TRACE: what is read back from the file, by eye of this test and by a JSON reader where there is one. */
#include <locale.h>
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
        assert_int_equal(0, count_of(&t, "agreement "));
        assert_true(count_of(&t, "agreement") > 0);
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

/* As a program does that takes the locale of its user, here one with decimal commas. */
static void numbers_have_points_in_every_locale(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    static traced      t;
    char               path[64], command[256];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/locales", folder);
    (void)snprintf(command, sizeof command, "mkdir -p %s && localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
                   path, path);
    if (fsdp_test_rank() == 0 && system(command) != 0) {
        print_message("there is no localedef, or its sources are missing (package locales): not tested\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    (void)setenv("LOCPATH", path, 1);
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) {
        assert_string_equal(",", localeconv()->decimal_point);
    }
    train_traced(&options, 1, 3, &t);
    assert_int_equal(3, count_of(&t, "forward a"));
    (void)setlocale(LC_NUMERIC, "C");
    (void)unsetenv("LOCPATH");
    MPI_Barrier(MPI_COMM_WORLD);
    (void)snprintf(command, sizeof command, "rm -r %s", path);
    assert_true(fsdp_test_rank() != 0 || system(command) == 0);
}

/* What is printed to stderr meanwhile, on this rank. */
static void train_onto_a_full_disk(const char *log, char *text, size_t size)
{
    static char name[96], prefix[64];
    fsdp_config config;
    small_model m;
    int         stderr_was = dup(STDERR_FILENO);

    (void)snprintf(prefix, sizeof prefix, "%s/full", folder);
    (void)snprintf(name, sizeof name, "%s.%d.4.json", prefix, fsdp_test_rank());
    assert_int_equal(0, symlink("/dev/full", name));
    assert_non_null(freopen(log, "w+", stderr));
    fsdp_config_init(&config);
    config.trace = prefix;
    small_model_build(&m, MPI_COMM_WORLD, &config, NULL);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    for (int pass = 0; pass < 30; pass++) { /* more than the C library keeps */
        run_pass(&m, pass);
    }
    small_model_close(&m);
    (void)fflush(stderr);
    FILE *file = fopen(log, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    (void)fclose(file);
    (void)dup2(stderr_was, STDERR_FILENO);
    (void)close(stderr_was);
    assert_int_equal(0, unlink(name));
    assert_int_equal(0, unlink(log));
}

static void a_full_disk_is_told_once_by_each_rank(void **state)
{
    char log[64], text[2000];

    (void)state;
    (void)snprintf(log, sizeof log, "%s/stderr.%d", folder, fsdp_test_rank());
    train_onto_a_full_disk(log, text, sizeof text);
    const char *told =
        strstr(text, "FSDP_TRACE: this rank's file cannot be written any more and is cut off: No space left");
    assert_non_null(told);
    assert_null(strstr(told + 1, "FSDP_TRACE"));
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
    cmocka_unit_test(numbers_have_points_in_every_locale),
    cmocka_unit_test(a_full_disk_is_told_once_by_each_rank),
    cmocka_unit_test(a_trace_that_cannot_be_written_is_an_error_on_all_ranks),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, trace, make_folder, remove_folder);
}
