#include "example_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "example_error.h"

#define MOST_ROWS 64

static fsdp_status read_size(const example_option *row, const char *text, size_t *value)
{
    char              *end;
    unsigned long long number;

    errno  = 0;
    number = strtoull(text, &end, 10);
    if (strspn(text, "0123456789") != strlen(text) || !*text || errno || (double)number < row->least ||
        (double)number > row->most) {
        return example_fail("--%s is '%.60s'; give a whole number from %.0f to %.0f", row->name, text, row->least,
                            row->most);
    }
    *value = (size_t)number;
    return FSDP_OK;
}

static fsdp_status read_number(const example_option *row, const char *text, double *value)
{
    char  *end;
    double number = strtod(text, &end);

    if (end == text || *end || !(number >= row->least && number <= row->most)) {
        return example_fail("--%s is '%.60s'; give a number from %g to %g", row->name, text, row->least, row->most);
    }
    *value = number;
    return FSDP_OK;
}

static fsdp_status read_count(const example_option *row, const char *text, int *value)
{
    size_t number = 0;

    EXAMPLE_TRY(read_size(row, text, &number));
    *value = (int)number;
    return FSDP_OK;
}

/* Name `i` of a row's choices; NULL after the last. */
static const char *choice_name(const example_option *row, int i)
{
    if (row->kind == EXAMPLE_STRATEGY) {
        return i < FSDP_N_STRATEGIES ? fsdp_strategy_name((fsdp_strategy)i) : NULL;
    }
    return row->choices[i];
}

/* The number of a choice, in any case; or -1, and rank 0 has listed them. */
static int find_choice(const example_option *row, const char *text)
{
    char   known[EXAMPLE_MESSAGE_BYTES] = "";
    size_t used                         = 0;
    int    i;

    for (i = 0; choice_name(row, i); i++) {
        if (strcasecmp(text, choice_name(row, i)) == 0) {
            return i;
        }
        if (used < sizeof known) {
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", choice_name(row, i));
        }
    }
    (void)example_fail("--%s is '%.60s'; use %s%s", row->name, text, i > 1 ? "one of " : "", known);
    return -1;
}

static fsdp_status read_choice(const example_option *row, const char *text, void *field)
{
    const int choice = find_choice(row, text);

    if (choice < 0) {
        return FSDP_ERR_ARG;
    }
    if (row->kind == EXAMPLE_DTYPE) {
        return fsdp_dtype_parse(row->choices[choice], field);
    }
    if (row->kind == EXAMPLE_STRATEGY) {
        *(fsdp_strategy *)field = (fsdp_strategy)choice;
    } else {
        *(int *)field = choice;
    }
    return FSDP_OK;
}

static fsdp_status read_value(const example_option *row, const char *text, void *options)
{
    void *field = (char *)options + row->field;

    switch (row->kind) {
    case EXAMPLE_SIZE:
        return read_size(row, text, field);
    case EXAMPLE_COUNT:
        return read_count(row, text, field);
    case EXAMPLE_NUMBER:
        return read_number(row, text, field);
    case EXAMPLE_TEXT:
        *(const char **)field = text;
        break;
    case EXAMPLE_CHOICE:
    case EXAMPLE_STRATEGY:
    case EXAMPLE_DTYPE:
        return read_choice(row, text, field);
    case EXAMPLE_FLAG:
        *(int *)field = 1;
        break;
    }
    return FSDP_OK;
}

/* getopt's own message would come from every rank. */
static fsdp_status report_unknown(int found, char *const *argv)
{
    const char *argument = argv[optind - 1];

    if (found == ':') {
        return example_fail("%.60s needs a value; --help lists the options", argument);
    }
    if (strncmp(argument, "--", 2) == 0 && strchr(argument, '=')) {
        return example_fail("option '%.60s' is unknown or takes no value; --help lists the options", argument);
    }
    if (optopt) {
        return example_fail("option '-%c' is unknown; --help lists the options", optopt);
    }
    return example_fail("option '%.60s' is unknown; --help lists the options", argument);
}

fsdp_status example_options_read(int argc, char **argv, const example_option *rows, size_t n_rows, void *options)
{
    struct option table[MOST_ROWS + 1] = {{0}};
    int           row                  = 0, found;
    size_t        i;

    for (i = 0; i < n_rows && i < MOST_ROWS; i++) {
        table[i] =
            (struct option){rows[i].name, rows[i].kind == EXAMPLE_FLAG ? no_argument : required_argument, NULL, 0};
    }
    opterr = 0;
    while ((found = getopt_long(argc, argv, ":", table, &row)) == 0) {
        EXAMPLE_TRY(read_value(&rows[row], optarg, options));
    }
    if (found != -1) {
        return report_unknown(found, argv);
    }
    if (optind < argc) {
        return example_fail("argument '%.60s' belongs to no option; --help lists the options", argv[optind]);
    }
    return FSDP_OK;
}

/* Whether a default is a value; or else stands for an option that was not given. */
static int is_value(const example_option *row, const void *field)
{
    switch (row->kind) {
    case EXAMPLE_SIZE:
        return (double)*(const size_t *)field >= row->least;
    case EXAMPLE_COUNT:
        return *(const int *)field >= row->least;
    case EXAMPLE_NUMBER:
        return *(const double *)field >= row->least;
    case EXAMPLE_TEXT:
        return *(const char *const *)field != NULL;
    case EXAMPLE_CHOICE:
    case EXAMPLE_STRATEGY:
    case EXAMPLE_DTYPE:
    case EXAMPLE_FLAG:
        break;
    }
    return row->kind != EXAMPLE_FLAG;
}

static void print_default(const example_option *row, const void *field)
{
    switch (row->kind) {
    case EXAMPLE_SIZE:
        printf(" (%zu)", *(const size_t *)field);
        break;
    case EXAMPLE_COUNT:
        printf(" (%d)", *(const int *)field);
        break;
    case EXAMPLE_NUMBER:
        printf(" (%g)", *(const double *)field);
        break;
    case EXAMPLE_TEXT:
        printf(" (%s)", *(const char *const *)field);
        break;
    case EXAMPLE_CHOICE:
        printf(" (%s)", choice_name(row, *(const int *)field));
        break;
    case EXAMPLE_STRATEGY:
        printf(" (%s)", fsdp_strategy_name(*(const fsdp_strategy *)field));
        break;
    case EXAMPLE_DTYPE:
        printf(" (%s)", fsdp_dtype_name(*(const fsdp_dtype *)field));
        break;
    case EXAMPLE_FLAG:
        break;
    }
}

void example_options_print(const example_option *rows, size_t n_rows, const void *defaults)
{
    size_t i;

    for (i = 0; i < n_rows; i++) {
        const void *field = (const char *)defaults + rows[i].field;
        char        name[40];

        (void)snprintf(name, sizeof name, "--%s%s", rows[i].name, rows[i].kind == EXAMPLE_FLAG ? "" : " X");
        printf("  %-17s  %s", name, rows[i].help);
        if (is_value(&rows[i], field)) {
            print_default(&rows[i], field);
        }
        putchar('\n');
    }
}
