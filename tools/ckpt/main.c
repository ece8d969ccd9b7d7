/*
 * fsdp-ckpt: what is in a checkpoint, whether it is whole, how two differ, and the same in another type or in other files.
 *
 *     fsdp-ckpt list run1 --stats
 *     fsdp-ckpt verify run1/step-000000500
 *     fsdp-ckpt compare run1/step-000000500 run2/step-000000500
 *     fsdp-ckpt convert run1 gpt-bf16.safetensors --dtype bf16 --max-file-size 2G
 *
 * Without MPI: for a login node as well as for a compute node.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fsdp/version.h"
#include "tools/ckpt/ckpt.h"
#include "tools/common/options.h"

static const char help[] =
    "usage: fsdp-ckpt list PATH [--stats] [--json]\n"
    "       fsdp-ckpt verify PATH [--json]\n"
    "       fsdp-ckpt compare PATH PATH [--json]\n"
    "       fsdp-ckpt convert PATH FILE.safetensors [--part P] [--dtype T] [--max-file-size N]\n"
    "\n"
    "PATH is a checkpoint, a folder whose `latest` names one, a .safetensors file, or an index of several\n"
    "(.index.json).\n"
    "\n"
    "  list               tensors with type, shape and bytes\n"
    "    --stats          and minimum, maximum, mean, root mean square of what is finite, and how many are not\n"
    "  verify             every rule of the format, and the checksums of a checkpoint\n"
    "  compare            tensors that only one has, and the largest differences of those that both have\n"
    "  convert            the model's tensors into a new file, or several with an index beside them\n"
    "    --part P         optimizer, simulation for the program's own arrays, or NAME.model and NAME.optimizer of a\n"
    "                     model with a name, in place of the model\n"
    "    --dtype T        f32, bf16 or f16 in place of every floating type; default: as they are\n"
    "    --max-file-size N  begin another file before one exceeds N bytes of tensors; K, M, G, T are 1024s\n"
    "  --json             print JSON\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 good; 1 the two differ, or a file is damaged; 2 wrong usage; 3 a file could not be read or\n"
    "written, or memory was short.\n";

/* Names are those of safetensors, in any case. */
static void read_dtype(const cli_option *option, const char *text, void *field, char *message)
{
    static const fsdpi_stored possible[] = {FSDPI_STORED_F32, FSDPI_STORED_BF16, FSDPI_STORED_F16};

    for (size_t i = 0; i < sizeof possible / sizeof *possible; i++) {
        if (strcasecmp(text, fsdpi_stored_name(possible[i])) == 0) {
            *(const fsdpi_stored **)field = &possible[i];
            return;
        }
    }
    CLI_SAY(message, "--%s is '%.60s'; use f32, bf16 or f16", option->name, text);
}

#define FIELD(name) .field = offsetof(ckpt_options, name)

static const cli_option list_options[] = {
    {"PATH", CLI_ARGUMENT, FIELD(paths[0])},
    {"stats", CLI_FLAG, FIELD(stats)},
    {"json", CLI_FLAG, FIELD(json)},
};
static const cli_option verify_options[] = {
    {"PATH", CLI_ARGUMENT, FIELD(paths[0])},
    {"json", CLI_FLAG, FIELD(json)},
};
static const cli_option compare_options[] = {
    {"PATH", CLI_ARGUMENT, FIELD(paths[0])},
    {"the second PATH", CLI_ARGUMENT, FIELD(paths[1])},
    {"json", CLI_FLAG, FIELD(json)},
};
static const cli_option convert_options[] = {
    {"PATH", CLI_ARGUMENT, FIELD(paths[0])},
    {"FILE.safetensors", CLI_ARGUMENT, FIELD(paths[1])},
    {"part", CLI_TEXT, FIELD(part)},
    {"dtype", CLI_CUSTOM, FIELD(dtype), .read = read_dtype},
    {"max-file-size", CLI_BYTES, FIELD(max_file_bytes), 1, 1e18},
};

typedef struct ckpt_command {
    const char *name;
    int (*run)(const ckpt_options *);
    const cli_option *options;
    size_t            n_options;
} ckpt_command;

#define ROWS(options) (options), sizeof(options) / sizeof *(options)

static const ckpt_command commands[] = {
    {"list", ckpt_list, ROWS(list_options)},
    {"verify", ckpt_verify, ROWS(verify_options)},
    {"compare", ckpt_compare, ROWS(compare_options)},
    {"convert", ckpt_convert, ROWS(convert_options)},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static int run(const ckpt_command *command, int argc, char **argv)
{
    ckpt_options options = {0};
    char         message[CLI_MESSAGE_BYTES];

    cli_options_read(argc, argv, command->options, command->n_options, &options, message);
    if (message[0]) {
        (void)fprintf(stderr, "fsdp-ckpt %s: %s\n", command->name, message);
        return CKPT_USAGE;
    }
    return command->run(&options);
}

/* What was printed may have gone nowhere. */
static int flush(int result)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fprintf(stderr, "fsdp-ckpt: the output cannot be written\n");
        return CKPT_FAILED;
    }
    return result;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(help, stdout);
            return flush(CKPT_GOOD);
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("fsdp-ckpt of libfsdp %s\n", fsdp_version());
            return flush(CKPT_GOOD);
        }
    }
    if (argc < 2) {
        (void)fprintf(stderr, "fsdp-ckpt: a command is missing; --help lists them\n");
        return CKPT_USAGE;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return flush(run(&commands[i], argc - 1, argv + 1));
        }
    }
    (void)fprintf(stderr, "fsdp-ckpt: there is no command '%.200s'; --help lists them\n", argv[1]);
    return CKPT_USAGE;
}
