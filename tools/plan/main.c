/*
 * fsdp-plan: what a pipeline schedule will do, before a job is started with it.
 *
 *     fsdp-plan pipeline --schedule 1f1b --ranks 4 --micro 8
 *     fsdp-plan pipeline --file schedule.csv --buffers 2 --most-held 4
 *
 * Without MPI: for a login node or a laptop.
 */
#include <stdio.h>
#include <string.h>

#include "fsdp/version.h"
#include "shard/pipeline/generate.h"
#include "tools/common/options.h"
#include "tools/plan/plan.h"

static const char help[] =
    "usage: fsdp-plan pipeline [OPTION...]\n"
    "\n"
    "Proves that a pipeline schedule can be carried out, and prints who does what and when, how long ranks wait for\n"
    "others, and how many micro-batches each holds at once.\n"
    "\n";

#define FIELD(name) .field = offsetof(plan_options, name)
enum { MOST = 65536 };

static const cli_option options[] = {
    {"schedule", CLI_CHOICE, FIELD(kind), .choices = "gpipe|1f1b|interleaved|zb-h1", .fallback = "1f1b",
     .help = "the schedule"},
    {"file", CLI_TEXT, FIELD(path),
     .help = "instead, one from a file: a line per rank, actions as 0F0,0F1,0B0, with or without messages"},
    {"ranks", CLI_COUNT, FIELD(ranks), 1, MOST, .fallback = "4", .help = "ranks of the pipeline"},
    {"stages-per-rank", CLI_COUNT, FIELD(stages_per_rank), 1, 64, .fallback = "1", .help = "stages on each rank"},
    {"micro", CLI_COUNT, FIELD(micros), 1, MOST, .fallback = "8", .help = "micro-batches of a step"},
    {"forward", CLI_NUMBER, FIELD(forward), 0, 1e9, .fallback = "1",
     .help = "time of a micro-batch's forward pass through one stage, in any unit"},
    {"backward-input", CLI_NUMBER, FIELD(backward_input), 0, 1e9, .fallback = "1",
     .help = "and of the part of its backward pass that other stages wait for"},
    {"backward-weight", CLI_NUMBER, FIELD(backward_weight), 0, 1e9, .fallback = "1", .help = "and of the other part"},
    {"transfer", CLI_NUMBER, FIELD(transfer), 0, 1e9, .fallback = "0", .help = "time of a message to the next stage"},
    {"buffers", CLI_COUNT, FIELD(buffers), 1, MOST, .fallback = "1",
     .help = "messages to a stage, in one direction, that it has not received yet"},
    {"most-held", CLI_COUNT, FIELD(most_held), 0, MOST, .fallback = "0, any number",
     .help = "micro-batches whose activations a rank may hold at once"},
    {"write", CLI_TEXT, FIELD(write),
     .help = "write the schedule to this file; - for standard output, and nothing else"},
    {"lowered", CLI_FLAG, FIELD(lowered), .help = "write it with messages, gathering and reducing"},
    {"no-grid", CLI_FLAG, FIELD(quiet), .help = "leave the grid out"},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

/* What was printed may have gone nowhere. */
static int flush(int result)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fprintf(stderr, "fsdp-plan: the output cannot be written\n");
        return PLAN_FAILED;
    }
    return result;
}

static int print_help(void)
{
    (void)fputs(help, stdout);
    cli_options_print(options, N_OPTIONS);
    (void)fputs(
        "  --help, --version\n"
        "\n"
        "Exit status: 0 good; 1 the schedule cannot be carried out; 2 wrong usage; 3 a file could not be read or\n"
        "written, or memory was short.\n",
        stdout);
    return flush(PLAN_GOOD);
}

static int run_pipeline(int argc, char **argv)
{
    plan_options o = {.kind            = FSDPI_1F1B,
                      .ranks           = 4,
                      .stages_per_rank = 1,
                      .micros          = 8,
                      .buffers         = 1,
                      .forward         = 1,
                      .backward_input  = 1,
                      .backward_weight = 1};
    char         message[CLI_MESSAGE_BYTES];

    cli_options_read(argc, argv, options, N_OPTIONS, &o, message);
    if (message[0] != '\0') {
        (void)fprintf(stderr, "fsdp-plan: %s\n", message);
        return PLAN_USAGE;
    }
    return flush(plan_pipeline(&o));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return print_help();
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("fsdp-plan of libfsdp %s\n", fsdp_version());
            return flush(PLAN_GOOD);
        }
    }
    if (argc < 2) {
        (void)fprintf(stderr, "fsdp-plan: a command is missing: pipeline; --help lists its options\n");
        return PLAN_USAGE;
    }
    if (strcmp(argv[1], "pipeline") == 0) {
        return run_pipeline(argc - 1, argv + 1);
    }
    (void)fprintf(stderr, "fsdp-plan: there is no command '%.200s', only pipeline; --help lists its options\n",
                  argv[1]);
    return PLAN_USAGE;
}
