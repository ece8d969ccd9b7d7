/**
 * @file
 * A command line as a table: each option is a row that names a field of the program's structure. Nothing is printed but the
 * help, so that one rank can say for all what is wrong.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

/** BYTES of the longest message about a command line, with its NUL. */
#define CLI_MESSAGE_BYTES 400

/** Says what is wrong and what to do, in CLI_MESSAGE_BYTES at `message`. */
#define CLI_SAY(message, ...) ((void)snprintf(message, CLI_MESSAGE_BYTES, __VA_ARGS__))

/** What a row reads, and the type of its field. */
typedef enum cli_kind {
    CLI_COUNT,   /**< size_t */
    CLI_BYTES,   /**< size_t; K, M, G, T are 1024s */
    CLI_RATE,    /**< size_t; K, M, G, T are 1000s */
    CLI_NUMBER,  /**< double */
    CLI_TEXT,    /**< const char *, not empty */
    CLI_CHOICE,  /**< int: the position among the choices, which are found in any case */
    CLI_FLAG,    /**< int: 1 where it is given; takes no value */
    CLI_CUSTOM,  /**< what the row's function reads */
    CLI_ARGUMENT /**< const char *: no option, but what stands at this row's place among the arguments; must be given */
} cli_kind;

/** One option, or one argument. */
typedef struct cli_option {
    const char *name; /**< of an option without its dashes */
    cli_kind    kind;
    size_t      field;    /**< where it lies, offsetof() */
    double      min, max; /**< of CLI_COUNT, CLI_BYTES, CLI_RATE and CLI_NUMBER; of whole numbers below 2^63 */
    const char *choices;  /**< of CLI_CHOICE, with | between them */
    const char *fallback; /**< what holds without the option, as the help says it; or NULL */
    const char *help;
    /** Of CLI_CUSTOM: sets the field, or says what is wrong with the text. */
    void (*read)(const struct cli_option *option, const char *text, void *field, char *message);
} cli_option;

/**
 * Reads a command line, argv[1] and what follows, as getopt_long() does. Needs no MPI, and gives the same on all ranks.
 *
 * @param[in,out] fields   the program's structure; what the line leaves out keeps its value
 * @param[out]    message  CLI_MESSAGE_BYTES: the first thing that is wrong and what to do; "" if nothing is
 */
void cli_options_read(int argc, char **argv, const cli_option *options, size_t n_options, void *fields, char *message);

/** Prints a line per option. */
void cli_options_print(const cli_option *options, size_t n_options);

#endif
