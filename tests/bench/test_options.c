/* What fsdp-bench's options mean together, as bench_options_parse() has it: neither MPI nor a context is needed. */
#include "tests/support/unit_test.h"

#include <stdio.h>
#include <string.h>

#include "bench/base/options.h"
#include "bench/job/job.h"
#include "tools/common/options.h"

#define MOST_WORDS 6

/* Parses a command line of words between blanks. */
static void parse(const char *line, bench_options *options, char *message)
{
    char words[200], *argv[MOST_WORDS + 2] = {"fsdp-bench"}, *rest = words;
    int  argc = 1;

    assert_true(snprintf(words, sizeof words, "%s", line) < (int)sizeof words);
    for (char *word = strtok_r(rest, " ", &rest); word && argc <= MOST_WORDS; word = strtok_r(rest, " ", &rest)) {
        argv[argc++] = word;
    }
    bench_options_parse(argc, argv, options, message);
}

static void sizes_have_the_defaults_of_their_run(void **state)
{
    static const struct {
        const char *line;
        size_t      begin, end, factor;
    } runs[] = {
        {"", 8, (size_t)256 << 20, 4},
        {"--overlap", 64 << 10, (size_t)256 << 20, 4},
        {"--overlap --begin 8", 8, (size_t)256 << 20, 4},
        {"--floor", 8, (size_t)256 << 20, 4},
        {"--async", 1 << 20, (size_t)64 << 20, 8},
        {"--async --begin 8 --factor 2", 8, (size_t)64 << 20, 2},
        {"--device gpu --kernels", (size_t)64 << 20, (size_t)256 << 20, 4},
        {"--end 1K", 8, 1024, 4},
    };
    bench_options options;
    char          message[CLI_MESSAGE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        parse(runs[i].line, &options, message);
        assert_string_equal("", message);
        assert_int_equal(runs[i].begin, options.begin);
        assert_int_equal(runs[i].end, options.end);
        assert_int_equal(runs[i].factor, options.factor);
    }
}

static void the_last_size_is_the_end(void **state)
{
    static const struct {
        const char *line;
        size_t      sizes[6]; /* and 0 after the last */
    } runs[] = {
        {"--begin 4M", {4 << 20, 16 << 20, 64 << 20, 256 << 20}},
        {"--begin 8M", {8 << 20, 32 << 20, 128 << 20, 256 << 20}},
        {"--begin 12 --end 700 --factor 5", {12, 60, 300, 700}},
        {"--begin 8 --end 9 --factor 2", {8, 9}},
        {"--begin 7 --end 7", {7}},
        {"--begin 250000G --end 900000G --factor 1000000", {(size_t)250000 << 30, (size_t)900000 << 30}},
    };
    bench_options options;
    char          message[CLI_MESSAGE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        size_t bytes = 0;

        parse(runs[i].line, &options, message);
        assert_string_equal("", message);
        for (const size_t *size = runs[i].sizes; *size; size++) {
            bytes = bench_next_size(&options, bytes);
            assert_int_equal(*size, bytes);
        }
        assert_int_equal(0, bench_next_size(&options, bytes));
    }
}

static void what_does_not_go_together_is_refused(void **state)
{
#define OTHERS " takes --collective allgather, reduce_scatter and allreduce only; leave out the others"
#define HOST   " works on host memory; leave out one of them"
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--overlap --collective broadcast", "--overlap" OTHERS},
        {"--floor --collective all", "--floor" OTHERS},
        {"--async --collective alltoall", "--async" OTHERS},
        {"--tune=x --collective reduce", "--tune" OTHERS},
        {"--floor --device gpu", "--device is gpu, but --floor" HOST},
        {"--async --device gpu", "--device is gpu, but --async" HOST},
        {"--floor --dtype bf16", "--floor times sums of f32; leave out --dtype and --op"},
        {"--floor --op max", "--floor times sums of f32; leave out --dtype and --op"},
        {"--floor --in-place",
         "--floor works out of place, with a result for each rank; leave out --in-place and --result"},
        {"--floor --result shared",
         "--floor works out of place, with a result for each rank; leave out --in-place and --result"},
        {"--async --thread-level single",
         "--async measures the progress thread, which needs --thread-level multiple; use that"},
        {"--async --begin 128M", "--begin is 134217728, above --end 67108864; use at most as much"},
        {"--floor --async", "--overlap, --floor, --async, --lanes, --record, --drop-in, --shards, --step, "
                            "--checkpoint, --pipeline, --kernels, --tune and "
                            "--algorithms are runs of their own; use one of them"},
        {"--alpha 3", "--alpha is for --algorithms on nodes that are made up; give --algorithms and --nodes with it"},
        {"--nodes 3 --floor",
         "--nodes is for --algorithms on nodes that are made up; give --algorithms and --nodes with it"},
        {"--async --plot x.svg", "--plot is 'x.svg', but only the plain sweep is drawn; leave out the other one"},
    };
    bench_options options;
    char          message[CLI_MESSAGE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        parse(cases[i].line, &options, message);
        assert_string_equal(cases[i].message, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_the_defaults_of_their_run),
        cmocka_unit_test(the_last_size_is_the_end),
        cmocka_unit_test(what_does_not_go_together_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
