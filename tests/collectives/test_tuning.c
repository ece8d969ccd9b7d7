/** @file The table of algorithms as a file: what is printed can be read again, and what cannot be read is named. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsdp/algorithms.h"
#include "fsdp/collectives.h"
#include "tests/support/mpi_test.h"

#define HEADER "# fsdp-tuning 1\n"

enum { PATH_BYTES = 64, MOST_ROWS = 256 };

/* Each rank has a file of its own: they need not share a file system. */
static void write_file(char *path, const char *text)
{
    (void)snprintf(path, PATH_BYTES, "/tmp/fsdp-tuning-XXXXXX");
    const int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal((ssize_t)strlen(text), write(file, text, strlen(text)));
    assert_int_equal(0, close(file));
}

static fsdp_status open_with(const char *path, fsdp_context **ctx)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.log_level   = FSDP_LOG_OFF;
    config.tuning_file = path;
    return fsdp_init(MPI_COMM_WORLD, &config, ctx);
}

static char *printed(const fsdp_context *ctx)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *file = open_memstream(&text, &size);

    assert_non_null(file);
    assert_int_equal(FSDP_OK, fsdp_algorithms_print(ctx, file));
    assert_int_equal(0, fclose(file));
    return text;
}

/* The context that a file gives; the file is gone by then. */
static fsdp_context *context_of(const char *text)
{
    char          path[PATH_BYTES];
    fsdp_context *ctx;

    write_file(path, text);
    const fsdp_status status = open_with(path, &ctx);
    assert_int_equal(0, unlink(path));
    if (status != FSDP_OK) {
        fail_msg("fsdp_init: %s", fsdp_last_error(NULL));
    }
    return ctx;
}

static void what_is_printed_is_a_tuning_file(void **state)
{
    char         *built_in = printed(NULL);
    fsdp_context *ctx      = context_of(built_in);
    char         *again    = printed(ctx);

    (void)state;
    assert_string_equal(built_in, again);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(again);
    free(built_in);
    assert_int_equal(FSDP_ERR_ARG, fsdp_algorithms_print(NULL, NULL));
}

/* Behind whose rows come the costs that they follow from. Two nodes of one rank may have rows for what caches hold. */
static void so_is_what_is_printed_of_several_nodes(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.node_size = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    char *by_cost = printed(ctx);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    ctx         = context_of(by_cost);
    char *again = printed(ctx);
    assert_int_equal(0, strncmp(by_cost, again, strlen(again)));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(again);
    free(by_cost);
}

static void a_context_prints_the_table_that_it_was_given(void **state)
{
    fsdp_context *ctx  = context_of(HEADER "\n  # a comment\nallgather any any 18446744073709551614 ring#another one\n"
                                            "\tbarrier user many any staged\r\n");
    char         *text = printed(ctx);

    (void)state;
    assert_non_null(strstr(text, "18446744073709551614 ring"));
    assert_non_null(strstr(text, "barrier"));
    assert_null(strstr(text, "allreduce"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(text);
}

static void a_last_line_without_an_end_counts(void **state)
{
    fsdp_context *ctx  = context_of(HEADER "allreduce any any any staged");
    char         *text = printed(ctx);

    (void)state;
    assert_non_null(strstr(text, "allreduce"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(text);
}

/* ---- nonsense ------------------------------------------------------------------------------------------------------ */

/* On the last rank alone, and all the same an error everywhere. */
static void assert_refused(const char *text, int line, const char *what)
{
    const int     last = fsdp_test_rank() == fsdp_test_size() - 1;
    char          path[PATH_BYTES], expected[128];
    fsdp_context *ctx;

    write_file(path, last ? text : HEADER);
    const fsdp_status status = open_with(path, &ctx);
    assert_int_equal(0, unlink(path));
    assert_int_equal(FSDP_ERR_ARG, status);
    assert_null(ctx);
    if (last) {
        (void)snprintf(expected, sizeof expected, "tuning file %s, line %d %s", path, line, what);
    } else {
        (void)snprintf(expected, sizeof expected, "line %d %s", line, what);
    }
    if (strstr(fsdp_last_error(NULL), expected) == NULL) {
        fail_msg("'%s' does not say '%s'", fsdp_last_error(NULL), expected);
    }
}

static void a_file_without_the_header_is_refused(void **state)
{
    (void)state;
    assert_refused("", 1, "is not '# fsdp-tuning 1'");
    assert_refused("allreduce any any any staged\n", 1, "is not '# fsdp-tuning 1'");
    assert_refused("# fsdp-tuning 2\n", 1, "is not '# fsdp-tuning 1'");
}

static void a_version_that_only_begins_alike_is_refused(void **state)
{
    (void)state;
    assert_refused("# fsdp-tuning 17\n", 1, "is not '# fsdp-tuning 1'");
}

static void wrong_words_are_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "allreduce any any any\n", 2, "has not five words");
    assert_refused(HEADER "allreduce any any any staged staged\n", 2, "has not five words");
    assert_refused(HEADER "\nallreduce\n", 3, "has not five words");
    assert_refused(HEADER "allreduce_is_not_called_that any any any staged\n", 2, "");
    assert_refused(HEADER "gather any any any staged\n", 2, "begins with no collective");
    assert_refused(HEADER "allreduce both any any staged\n", 2, "has a memory that is none of");
    assert_refused(HEADER "allreduce any two any staged\n", 2, "has nodes that are none of");
    assert_refused(HEADER "ALLREDUCE any any any staged\n", 2, "begins with no collective");
}

static void wrong_numbers_are_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "allreduce any any -1 staged\n", 2, "has a number of bytes");
    assert_refused(HEADER "allreduce any any 12x staged\n", 2, "has a number of bytes");
    assert_refused(HEADER "allreduce any any 1.5 staged\n", 2, "has a number of bytes");
    assert_refused(HEADER "allreduce any any 18446744073709551616 staged\n", 2, "has a number of bytes");
    assert_refused(HEADER "allreduce any any all staged\n", 2, "has a number of bytes");
}

static void a_line_that_is_too_long_is_refused(void **state)
{
    char text[600] = HEADER "allreduce any any any staged #";

    (void)state;
    memset(text + strlen(text), 'x', 500);
    assert_refused(text, 2, "is too long");
}

static char *file_of_rows(int n)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *file = open_memstream(&text, &size);

    assert_non_null(file);
    (void)fputs(HEADER, file);
    for (int i = 0; i < n; i++) {
        (void)fputs("allreduce any any any staged\n", file);
    }
    assert_int_equal(0, fclose(file));
    return text;
}

static void a_row_too_many_is_refused(void **state)
{
    char *most = file_of_rows(MOST_ROWS), *too_many = file_of_rows(MOST_ROWS + 1);

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_finalize(context_of(most)));
    assert_refused(too_many, MOST_ROWS + 2, "is one row too many");
    free(most);
    free(too_many);
}

static void a_file_that_is_not_there_is_refused(void **state)
{
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, open_with("/no/such/tuning-file", &ctx));
    assert_null(ctx);
    assert_non_null(strstr(fsdp_last_error(NULL), "/no/such/tuning-file"));
    assert_int_equal(FSDP_ERR_ARG, open_with("/tmp", &ctx));
    assert_non_null(strstr(fsdp_last_error(NULL), "/tmp"));
}

static void files_that_differ_between_ranks_are_refused(void **state)
{
    const int     last = fsdp_test_rank() == fsdp_test_size() - 1;
    char          path[PATH_BYTES];
    fsdp_context *ctx;

    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    write_file(path, last ? HEADER "allreduce any any 100 staged\n" : HEADER "allreduce any any 101 staged\n");
    const fsdp_status status = open_with(path, &ctx);
    assert_int_equal(0, unlink(path));
    assert_int_equal(FSDP_ERR_MISMATCH, status);
    assert_null(ctx);
    assert_says(NULL, "rank 0 has FSDP_TUNING_FILE=/tmp/fsdp-tuning-");
    assert_says(NULL, "(1 rows, checksum ");
    assert_null(strstr(fsdp_last_error(NULL), "FSDP_TIMEOUT_S"));
    assert_null(strstr(fsdp_last_error(NULL), "FSDP_ALGO_"));
}

static void a_file_on_one_rank_only_is_refused(void **state)
{
    const int     last = fsdp_test_size() - 1;
    char          path[PATH_BYTES], words[96];
    fsdp_context *ctx;

    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    write_file(path, HEADER "allreduce any any any staged\n");
    const fsdp_status status = open_with(fsdp_test_rank() == last ? path : "", &ctx);
    assert_int_equal(0, unlink(path));
    assert_int_equal(FSDP_ERR_MISMATCH, status);
    (void)snprintf(words, sizeof words, "rank 0 has no FSDP_TUNING_FILE, but rank %d has FSDP_TUNING_FILE=/tmp/", last);
    assert_says(NULL, words);
}

/* ---- what it says is done ------------------------------------------------------------------------------------------ */

static const char *algorithm_of_an_allreduce(fsdp_context *ctx, size_t count)
{
    int32_t *values = calloc(count, sizeof *values);

    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (int32_t)i;
    }
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, values, count, FSDP_I32, FSDP_SUM));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal((int32_t)i * fsdp_size(ctx), values[i]);
    }
    free(values);
    return fsdp_last_algorithm(ctx);
}

static void a_file_is_obeyed(void **state)
{
    fsdp_context *ctx = context_of(HEADER "allreduce any any any staged\n");

    (void)state;
    assert_string_equal("none", fsdp_last_algorithm(ctx));
    assert_string_equal("staged", algorithm_of_an_allreduce(ctx, 1));
    assert_string_equal("staged", algorithm_of_an_allreduce(ctx, 5003));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void the_first_row_that_matches_counts(void **state)
{
    fsdp_context *ctx = context_of(HEADER "allreduce any many 400 staged\nallreduce user one 400 staged\n"
                                          "allreduce any any 800 inline\nallreduce any any 800 staged\n");

    (void)state;
    assert_string_equal("staged", algorithm_of_an_allreduce(ctx, 100));
    assert_string_equal("inline", algorithm_of_an_allreduce(ctx, 101));
    assert_string_equal("inline", algorithm_of_an_allreduce(ctx, 200));
    assert_string_equal("staged", algorithm_of_an_allreduce(ctx, 201)); /* behind the last row */
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_pair_is_one_node_of_two_ranks(void **state)
{
    fsdp_context *ctx  = context_of(HEADER "allreduce any pair any staged\nallreduce any any any inline\n");
    const bool    pair = fsdp_test_size() == 2 && fsdp_node_count(ctx) == 1;

    (void)state;
    assert_string_equal(pair ? "staged" : "inline", algorithm_of_an_allreduce(ctx, 10));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* However soon the same is reduced again: on one node that changes nothing. */
static void plain_memory_stays_plain_on_one_node(void **state)
{
    enum { TIMES = 100, COUNT = 500 };
    fsdp_context *ctx = context_of(HEADER "allreduce symmetric one any staged\nallreduce cached any any staged\n"
                                          "allreduce any any any inline\n");
    static float  in[COUNT], out[COUNT];

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, COUNT, FSDP_F32, FSDP_SUM));
        assert_string_equal("inline", fsdp_last_algorithm(ctx));
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_row_that_cannot_serve_a_call_is_passed_over(void **state)
{
    fsdp_context *ctx = context_of(HEADER "allreduce any any any direct\nallreduce any any any ring\n"
                                          "allreduce any any any inline\n");

    (void)state;
    assert_string_equal("inline", algorithm_of_an_allreduce(ctx, 100));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_setting_comes_before_the_file(void **state)
{
    char          path[PATH_BYTES];
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    write_file(path, HEADER "allreduce any any any inline\n");
    fsdp_config_init(&config);
    config.tuning_file    = path;
    config.algo_allreduce = FSDP_ALGO_STAGED;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(0, unlink(path));
    assert_string_equal("staged", algorithm_of_an_allreduce(ctx, 10));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* What fsdp_init() says on this rank about a file. */
static fsdp_context *listen_to_init(const char *path, char *said, size_t size)
{
    const int     standard_error = dup(STDERR_FILENO);
    FILE         *file           = tmpfile();
    fsdp_context *ctx;
    fsdp_config   config;

    assert_true(standard_error >= 0 && file != NULL);
    fsdp_config_init(&config);
    config.log_level   = FSDP_LOG_WARN;
    config.tuning_file = path;
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    const fsdp_status status = fsdp_init(MPI_COMM_WORLD, &config, &ctx);
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    assert_int_equal(FSDP_OK, status);
    rewind(file);
    said[fread(said, 1, size - 1, file)] = '\0';
    assert_int_equal(0, fclose(file));
    assert_int_equal(0, close(standard_error));
    return ctx;
}

static void an_algorithm_that_is_gone_is_named_and_its_row_passed_over(void **state)
{
    char path[PATH_BYTES], said[2000], expected[128];

    (void)state;
    write_file(path, HEADER "# a comment\nallreduce any any any tree\nallreduce any any any staged\n");
    fsdp_context *ctx = listen_to_init(path, said, sizeof said);
    assert_int_equal(0, unlink(path));
    (void)snprintf(expected, sizeof expected, "tuning file %s, line 3: there is no algorithm 'tree'", path);
    assert_true((strstr(said, expected) != NULL) == (fsdp_rank(ctx) == 0));
    assert_string_equal("staged", algorithm_of_an_allreduce(ctx, 10));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* As fsdp_algorithms_print_for() takes it, so that a table can be printed for twice as many. */
static void a_context_describes_its_nodes(void **state)
{
    fsdp_context *ctx;
    fsdp_config   config;
    fsdp_cluster  cluster;

    (void)state;
    for (int node_size = 0; node_size <= 1; node_size++) {
        fsdp_config_init(&config);
        config.node_size = node_size;
        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
        assert_int_equal(FSDP_OK, fsdp_cluster_of(ctx, &cluster));
        assert_int_equal(fsdp_node_count(ctx), cluster.nodes);
        assert_int_equal(fsdp_size(ctx), cluster.nodes * cluster.ranks_per_node);
        assert_int_equal(cluster.nodes > 1, cluster.latency_s > 0);
        assert_int_equal(cluster.nodes > 1, cluster.bytes_per_s > 0);
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_cluster_of(NULL, &cluster));
}

/* Each rank of an inline allreduce reads what all have: the more ranks, the less of each. */
static void the_more_ranks_the_shorter_what_all_of_them_read(void **state)
{
    const fsdp_cluster nodes = {.nodes = 2, .ranks_per_node = 64};
    char              *text  = NULL;
    size_t             bytes = 0;
    FILE              *file  = open_memstream(&text, &bytes);

    (void)state;
    assert_non_null(file);
    assert_int_equal(FSDP_OK, fsdp_algorithms_print_for(NULL, &nodes, file));
    assert_int_equal(0, fclose(file));
    assert_non_null(strstr(text, "\nallreduce      user      one       4096 inline "));
    free(text);
}

static void algorithms_have_names(void **state)
{
    (void)state;
    assert_string_equal("auto", fsdp_algorithm_text(FSDP_ALGO_AUTO));
    assert_string_equal("ring", fsdp_algorithm_text(FSDP_ALGO_RING));
    assert_string_equal("unknown", fsdp_algorithm_text((fsdp_algorithm)FSDP_N_ALGORITHMS));
    assert_string_equal("unknown", fsdp_algorithm_text((fsdp_algorithm)-1));
    assert_string_equal("none", fsdp_last_algorithm(NULL));
    assert_int_equal(0, fsdp_cache_bytes(NULL));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_a_tuning_file),
        cmocka_unit_test(so_is_what_is_printed_of_several_nodes),
        cmocka_unit_test(a_context_prints_the_table_that_it_was_given),
        cmocka_unit_test(a_last_line_without_an_end_counts),
        cmocka_unit_test(a_file_without_the_header_is_refused),
        cmocka_unit_test(a_version_that_only_begins_alike_is_refused),
        cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(a_line_that_is_too_long_is_refused),
        cmocka_unit_test(a_row_too_many_is_refused),
        cmocka_unit_test(a_file_that_is_not_there_is_refused),
        cmocka_unit_test(files_that_differ_between_ranks_are_refused),
        cmocka_unit_test(a_file_on_one_rank_only_is_refused),
        cmocka_unit_test(a_file_is_obeyed),
        cmocka_unit_test(the_first_row_that_matches_counts),
        cmocka_unit_test(a_pair_is_one_node_of_two_ranks),
        cmocka_unit_test(plain_memory_stays_plain_on_one_node),
        cmocka_unit_test(a_row_that_cannot_serve_a_call_is_passed_over),
        cmocka_unit_test(a_setting_comes_before_the_file),
        cmocka_unit_test(an_algorithm_that_is_gone_is_named_and_its_row_passed_over),
        cmocka_unit_test(a_context_describes_its_nodes),
        cmocka_unit_test(the_more_ranks_the_shorter_what_all_of_them_read),
        cmocka_unit_test(algorithms_have_names),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
