#include "tools/common/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Values ---- */

/* The factor of a suffix; 0 if it is none. */
static size_t suffix_factor(const char *suffix, size_t thousand)
{
    static const char letters[] = "KMGT";
    const char       *letter    = *suffix ? strchr(letters, *suffix) : NULL;
    size_t            factor    = 1, i;

    if (!*suffix) {
        return 1;
    }
    if (!letter || suffix[1]) {
        return 0;
    }
    for (i = 0; i <= (size_t)(letter - letters); i++) {
        factor *= thousand;
    }
    return factor;
}

static void read_whole_number(const cli_option *option, const char *text, size_t *value, char *message)
{
    const size_t       thousand = option->kind == CLI_RATE ? 1000 : 1024;
    char              *end;
    size_t             factor;
    unsigned long long number;
    double             product;

    number  = strtoull(text, &end, 10); /* too many digits: the largest one */
    factor  = option->kind == CLI_COUNT && *end ? 0 : suffix_factor(end, thousand);
    product = (double)number * (double)factor;
    if (text[0] < '0' || text[0] > '9' || factor == 0 || product < option->min || product > option->max) {
        CLI_SAY(message, "--%s is '%.60s'; give a whole number from %.0f to %.0f%s", option->name, text, option->min,
                option->max, option->kind == CLI_COUNT ? "" : ", if you like with K, M, G or T");
        return;
    }
    *value = (size_t)number * factor;
}

static void read_number(const cli_option *option, const char *text, double *value, char *message)
{
    char        *end;
    const double number = strtod(text, &end);

    if (end == text || *end || !(number >= option->min && number <= option->max)) {
        CLI_SAY(message, "--%s is '%.60s'; give a number from %g to %g", option->name, text, option->min, option->max);
        return;
    }
    *value = number;
}

static void read_text(const cli_option *option, const char *text, const char **value, char *message)
{
    if (!*text) {
        CLI_SAY(message, "--%s is empty; leave it out or give it a value", option->name);
    }
    *value = text;
}

static void read_argument(const cli_option *argument, const char *text, const char **value, char *message)
{
    if (!*text) {
        CLI_SAY(message, "%s is empty; give it a value", argument->name);
    }
    *value = text;
}

/* The position of `text`, in any case, among names separated by |; -1 if it is none. */
static int find_choice(const char *choices, const char *text)
{
    const size_t length = strlen(text);
    int          index  = 0;

    for (;;) {
        const size_t n = strcspn(choices, "|");

        if (n == length && strncasecmp(choices, text, n) == 0) {
            return index;
        }
        if (!choices[n]) {
            return -1;
        }
        choices += n + 1;
        index++;
    }
}

static void read_choice(const cli_option *option, const char *text, int *value, char *message)
{
    const int choice = find_choice(option->choices, text);

    if (choice < 0) {
        CLI_SAY(message, "--%s is '%.60s'; use %s", option->name, text, option->choices);
        return;
    }
    *value = choice;
}

static void read_value(const cli_option *option, const char *text, void *fields, char *message)
{
    void *field = (char *)fields + option->field;

    switch (option->kind) {
    case CLI_COUNT:
    case CLI_BYTES:
    case CLI_RATE:
        read_whole_number(option, text, field, message);
        break;
    case CLI_NUMBER:
        read_number(option, text, field, message);
        break;
    case CLI_TEXT:
        read_text(option, text, field, message);
        break;
    case CLI_CHOICE:
        read_choice(option, text, field, message);
        break;
    case CLI_FLAG:
        *(int *)field = 1;
        break;
    case CLI_CUSTOM:
        option->read(option, text, field, message);
        break;
    case CLI_ARGUMENT:
        read_argument(option, text, field, message);
        break;
    }
}

/* ---- The line ---- */

/* Above all letters, which getopt_long() returns as well. */
#define FIRST_OPTION 256

typedef struct line {
    const cli_option *options;
    size_t            n_options;
    size_t            n_arguments; /* so far */
    void             *fields;
    char             *message;
} line;

/* getopt's own message would come from every rank. */
static void report_unknown(int found, char *const *argv, char *message)
{
    const char *argument = argv[optind - 1];

    if (found == ':') {
        CLI_SAY(message, "%.60s needs a value; --help lists the options", argument);
    } else if (strncmp(argument, "--", 2) == 0 && strchr(argument, '=')) {
        CLI_SAY(message, "option '%.60s' is unknown or takes no value; --help lists the options", argument);
    } else if (optopt) {
        CLI_SAY(message, "option '-%c' is unknown; --help lists the options", optopt);
    } else {
        CLI_SAY(message, "option '%.60s' is unknown; --help lists the options", argument);
    }
}

/* The row of the argument that comes next; NULL if there are enough. */
static const cli_option *next_argument(const line *l)
{
    size_t i, before = l->n_arguments;

    for (i = 0; i < l->n_options; i++) {
        if (l->options[i].kind == CLI_ARGUMENT && before-- == 0) {
            return &l->options[i];
        }
    }
    return NULL;
}

static void read_next_argument(line *l, const char *text)
{
    const cli_option *argument = next_argument(l);

    if (!argument) {
        CLI_SAY(l->message, "argument '%.60s' %s; --help lists the options", text,
                l->n_arguments > 0 ? "is one too many" : "belongs to no option");
        return;
    }
    read_value(argument, text, l->fields, l->message);
    l->n_arguments++;
}

static void read_line(line *l, int argc, char **argv, const struct option *names)
{
    int found;

    opterr = 0;
    optind = 0; /* begin anew */
    while (!l->message[0] && (found = getopt_long(argc, argv, "-:", names, NULL)) != -1) {
        if (found >= FIRST_OPTION) {
            read_value(&l->options[found - FIRST_OPTION], optarg, l->fields, l->message);
        } else if (found == 1) {
            read_next_argument(l, optarg);
        } else {
            report_unknown(found, argv, l->message);
        }
    }
    while (!l->message[0] && optind < argc) { /* behind a -- */
        read_next_argument(l, argv[optind++]);
    }
    if (!l->message[0] && next_argument(l)) {
        CLI_SAY(l->message, "%s is missing; --help lists what is needed", next_argument(l)->name);
    }
}

void cli_options_read(int argc, char **argv, const cli_option *options, size_t n_options, void *fields, char *message)
{
    line           l     = {.options = options, .n_options = n_options, .fields = fields, .message = message};
    struct option *names = calloc(n_options + 1, sizeof *names), *name = names;
    size_t         i;

    message[0] = 0;
    if (!names) {
        CLI_SAY(message, "memory for %zu options cannot be had; free some", n_options);
        return;
    }
    for (i = 0; i < n_options; i++) {
        if (options[i].kind != CLI_ARGUMENT) {
            *name++ = (struct option){options[i].name, options[i].kind == CLI_FLAG ? no_argument : required_argument,
                                      NULL, FIRST_OPTION + (int)i};
        }
    }
    read_line(&l, argc, argv, names);
    free(names);
}

/* Columns of an option as the help has it: --name X. */
static int columns(const cli_option *option)
{
    return (int)strlen(option->name) + (option->kind == CLI_FLAG ? 2 : 4);
}

void cli_options_print(const cli_option *options, size_t n_options)
{
    int    widest = 0;
    size_t i;

    for (i = 0; i < n_options; i++) {
        widest = columns(&options[i]) > widest ? columns(&options[i]) : widest;
    }
    for (i = 0; i < n_options; i++) {
        const cli_option *o = &options[i];

        if (o->kind == CLI_ARGUMENT) {
            continue;
        }
        printf("  --%s%s%*s  %s", o->name, o->kind == CLI_FLAG ? "" : " X", widest - columns(o), "", o->help);
        if (o->fallback) {
            printf(" (%s)", o->fallback);
        }
        putchar('\n');
    }
}
