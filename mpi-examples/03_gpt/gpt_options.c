#include "gpt_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpt_error.h"

#define MOST_SIZE 1000000000

typedef enum option_kind { SIZE, NUMBER, TEXT, STRATEGY, DTYPE, PROGRESS, FLAG } option_kind;

/* One option: its field in gpt_options, and the least and the largest value of a SIZE or NUMBER. */
typedef struct option_row {
    const char *name;
    option_kind kind;
    size_t      field;
    double      least, most;
    const char *help;
} option_row;

#define FIELD(name) offsetof(gpt_options, name)

static const option_row rows[] = {
    {"layers", SIZE, FIELD(config.layers), 1, 100000, "blocks"},
    {"heads", SIZE, FIELD(config.heads), 1, MOST_SIZE, "attention heads per block; must divide the width"},
    {"width", SIZE, FIELD(config.width), 1, MOST_SIZE, "size of the residual stream"},
    {"context", SIZE, FIELD(config.context), 1, MOST_SIZE, "bytes that the model sees at once"},
    {"batch", SIZE, FIELD(batch), 1, MOST_SIZE, "sequences per step over all ranks; the ranks must divide it"},
    {"steps", SIZE, FIELD(steps), 1, MOST_SIZE, "optimizer steps"},
    {"lr", NUMBER, FIELD(lr), 0, 10, "largest learning rate"},
    {"min-lr", NUMBER, FIELD(min_lr), 0, 10, "learning rate at the end of the cosine"},
    {"warmup", SIZE, FIELD(warmup), 0, MOST_SIZE,
     "steps over which the learning rate rises; with fewer steps it is still rising in the end"},
    {"weight-decay", NUMBER, FIELD(weight_decay), 0, 10, "of the matrices"},
    {"beta2", NUMBER, FIELD(beta2), 0, 0.9999999, "AdamW's second decay rate"},
    {"clip", NUMBER, FIELD(clip), 1e-9, 1e9, "largest norm of a gradient"},
    {"strategy", STRATEGY, FIELD(strategy), 0, 0, "full_shard or no_shard"},
    {"seed", SIZE, FIELD(seed), 0, 9007199254740991.0, "of initial values, sample order and generated text"},
    {"dtype", DTYPE, 0, 0, 0, "f32"},
    {"data", TEXT, FIELD(data), 0, 0, "the file to learn; without it, the King James text of Debian's bible-kjv"},
    {"interval", SIZE, FIELD(interval), 1, MOST_SIZE, "steps from one report to the next"},
    {"val-batches", SIZE, FIELD(val_batches), 0, MOST_SIZE,
     "batches to validate on; 0: all of the last 5% of the data"},
    {"sample", SIZE, FIELD(sample), 0, MOST_SIZE, "bytes of text to generate in the end"},
    {"temperature", NUMBER, FIELD(temperature), 0, 100, "how freely; 0: always the most likely byte"},
    {"blas-threads", SIZE, FIELD(blas_threads), 0, 65536,
     "threads per rank in matrix products; 0: cores / ranks of a node"},
    {"progress", PROGRESS, FIELD(progress), 0, 0, "bar on stderr: on, off, or auto: if stderr is a terminal"},
    {"exact", FLAG, FIELD(exact), 0, 0, "print the loss of each step, and a hash of all parameters, to the last bit"},
    {"profile", FLAG, FIELD(profile), 0, 0, "print where the time of a step goes"},
    {"help", FLAG, FIELD(help), 0, 0, "this text"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const char *const progress_names[] = {"auto", "on", "off"};

/* What mpi-examples/demo.sh trains. A final rate below zero becomes a hundredth of the largest. */
static const gpt_options defaults = {
    .config       = {3, 3, 144, 128},
    .batch        = 24,
    .steps        = 1000,
    .warmup       = 100,
    .interval     = 50,
    .sample       = 400,
    .seed         = 1,
    .lr           = 6e-3,
    .min_lr       = -1,
    .weight_decay = 0.1,
    .beta2        = 0.99,
    .clip         = 1.0,
    .temperature  = 0.8,
};

static fsdp_status read_size(const fsdp_context *ctx, const option_row *row, const char *text, size_t *value)
{
    char              *end;
    unsigned long long number;

    errno  = 0;
    number = strtoull(text, &end, 10);
    if (strspn(text, "0123456789") != strlen(text) || !*text || errno || (double)number < row->least ||
        (double)number > row->most) {
        return gpt_fail(ctx, "--%s is '%.60s'; give a whole number from %.0f to %.0f", row->name, text, row->least,
                        row->most);
    }
    *value = (size_t)number;
    return FSDP_OK;
}

static fsdp_status read_number(const fsdp_context *ctx, const option_row *row, const char *text, double *value)
{
    char  *end;
    double number = strtod(text, &end);

    if (end == text || *end || !(number >= row->least && number <= row->most)) {
        return gpt_fail(ctx, "--%s is '%.60s'; give a number from %g to %g", row->name, text, row->least, row->most);
    }
    *value = number;
    return FSDP_OK;
}

static fsdp_status read_strategy(const fsdp_context *ctx, const char *text, fsdp_strategy *strategy)
{
    int s;

    for (s = 0; s < FSDP_N_STRATEGIES; s++) {
        if (strcasecmp(text, fsdp_strategy_name((fsdp_strategy)s)) == 0) {
            *strategy = (fsdp_strategy)s;
            return FSDP_OK;
        }
    }
    return gpt_fail(ctx, "--strategy is '%.60s'; use full_shard or no_shard", text);
}

static fsdp_status read_progress(const fsdp_context *ctx, const char *text, gpt_progress *progress)
{
    int p;

    for (p = GPT_PROGRESS_AUTO; p <= GPT_PROGRESS_OFF; p++) {
        if (strcmp(text, progress_names[p]) == 0) {
            *progress = (gpt_progress)p;
            return FSDP_OK;
        }
    }
    return gpt_fail(ctx, "--progress is '%.60s'; use auto, on or off", text);
}

static fsdp_status read_value(const fsdp_context *ctx, const option_row *row, const char *text, gpt_options *options)
{
    void *field = (char *)options + row->field;

    switch (row->kind) {
    case SIZE:
        return read_size(ctx, row, text, field);
    case NUMBER:
        return read_number(ctx, row, text, field);
    case STRATEGY:
        return read_strategy(ctx, text, field);
    case PROGRESS:
        return read_progress(ctx, text, field);
    case TEXT:
        *(const char **)field = text;
        return FSDP_OK;
    case FLAG:
        *(int *)field = 1;
        return FSDP_OK;
    case DTYPE:
        break;
    }
    return strcmp(text, "f32") == 0
               ? FSDP_OK
               : gpt_fail(ctx, "--dtype is '%.60s', which this program cannot train in; use f32", text);
}

static fsdp_status check_model(const fsdp_context *ctx, const gpt_options *o)
{
    const gpt_config *c     = &o->config;
    const size_t      ranks = (size_t)fsdp_size(ctx);

    if (c->width % c->heads != 0) {
        return gpt_fail(ctx, "--heads is %zu, which does not divide --width %zu; choose a divisor of the width",
                        c->heads, c->width);
    }
    if (gpt_parameters(c) == 0) {
        return gpt_fail(ctx,
                        "--layers %zu, --width %zu and --context %zu make more parameters than memory can address; "
                        "use smaller ones",
                        c->layers, c->width, c->context);
    }
    if (o->batch % ranks != 0) {
        return gpt_fail(ctx, "--batch is %zu, which %zu ranks cannot share equally; use a multiple of %zu", o->batch,
                        ranks, ranks);
    }
    if (gpt_activations_bytes(c, o->batch / ranks) == 0) {
        return gpt_fail(ctx,
                        "--batch %zu on %zu ranks with --context %zu and --width %zu is more than a matrix product can "
                        "index; use smaller ones",
                        o->batch, ranks, c->context, c->width);
    }
    return FSDP_OK;
}

static fsdp_status check_schedule(const fsdp_context *ctx, const gpt_options *o)
{
    if (o->min_lr > o->lr) {
        return gpt_fail(ctx, "--min-lr is %g, above --lr %g; use at most as much", o->min_lr, o->lr);
    }
    return FSDP_OK;
}

/* getopt's own message would come from every rank. */
static fsdp_status report_unknown(const fsdp_context *ctx, int found, char *const *argv)
{
    const char *argument = argv[optind - 1];

    if (found == ':') {
        return gpt_fail(ctx, "%.60s needs a value; --help lists the options", argument);
    }
    if (strncmp(argument, "--", 2) == 0 && strchr(argument, '=')) {
        return gpt_fail(ctx, "option '%.60s' is unknown or takes no value; --help lists the options", argument);
    }
    if (optopt) {
        return gpt_fail(ctx, "option '-%c' is unknown; --help lists the options", optopt);
    }
    return gpt_fail(ctx, "option '%.60s' is unknown; --help lists the options", argument);
}

static fsdp_status read_all(const fsdp_context *ctx, int argc, char **argv, gpt_options *options)
{
    struct option table[N_ROWS + 1] = {{0}};
    int           row               = 0, found;
    size_t        i;

    for (i = 0; i < N_ROWS; i++) {
        table[i] = (struct option){rows[i].name, rows[i].kind == FLAG ? no_argument : required_argument, NULL, 0};
    }
    opterr = 0;
    while ((found = getopt_long(argc, argv, ":", table, &row)) == 0) {
        GPT_TRY(read_value(ctx, &rows[row], optarg, options));
    }
    if (found != -1) {
        return report_unknown(ctx, found, argv);
    }
    if (optind < argc) {
        return gpt_fail(ctx, "argument '%.60s' belongs to no option; --help lists the options", argv[optind]);
    }
    return FSDP_OK;
}

fsdp_status gpt_options_parse(const fsdp_context *ctx, int argc, char **argv, gpt_options *options)
{
    *options = defaults;
    GPT_TRY(read_all(ctx, argc, argv, options));
    if (options->help) {
        return FSDP_OK;
    }
    if (options->min_lr < 0) {
        options->min_lr = options->lr / 100;
    }
    GPT_TRY(check_model(ctx, options));
    return check_schedule(ctx, options);
}

static void print_default(const option_row *row)
{
    const void *field = (const char *)&defaults + row->field;

    switch (row->kind) {
    case SIZE:
        printf(" (%zu)", *(const size_t *)field);
        break;
    case NUMBER:
        if (*(const double *)field < 0) {
            printf(" (a hundredth of the largest)");
        } else {
            printf(" (%g)", *(const double *)field);
        }
        break;
    case STRATEGY:
        printf(" (full_shard)");
        break;
    case PROGRESS:
        printf(" (auto)");
        break;
    case TEXT:
    case FLAG:
    case DTYPE:
        break;
    }
}

void gpt_options_help(void)
{
    size_t i;

    printf("usage: mpirun -n RANKS 03_gpt [OPTION]...\n\n"
           "Trains a GPT-2 on the bytes of a text, fully sharded over the ranks.\n\n");
    for (i = 0; i < N_ROWS; i++) {
        char name[40];

        snprintf(name, sizeof name, "--%s%s", rows[i].name, rows[i].kind == FLAG ? "" : " X");
        printf("  %-16s  %s", name, rows[i].help);
        print_default(&rows[i]);
        putchar('\n');
    }
}
