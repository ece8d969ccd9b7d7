/**
 * @file
 * A command line as a table: each option is a row that names a field of a structure.
 */
#ifndef EXAMPLE_OPTIONS_H
#define EXAMPLE_OPTIONS_H

#include <stddef.h>

#include <fsdp/fsdp.h>

/** What an option is, and its field. */
typedef enum example_option_kind {
    EXAMPLE_SIZE,     /* size_t */
    EXAMPLE_COUNT,    /* int, as the library's own settings have it */
    EXAMPLE_NUMBER,   /* double */
    EXAMPLE_TEXT,     /* const char * */
    EXAMPLE_CHOICE,   /* int, the number of the choice */
    EXAMPLE_STRATEGY, /* fsdp_strategy */
    EXAMPLE_DTYPE,    /* fsdp_dtype */
    EXAMPLE_FLAG      /* int: 1 where given */
} example_option_kind;

/** One option. */
typedef struct example_option {
    const char         *name; /**< without its dashes */
    example_option_kind kind;
    size_t              field;       /**< its offset */
    double              least, most; /**< of a SIZE, COUNT or NUMBER */
    const char *const  *choices;     /**< of a CHOICE, or the names of a DTYPE; with NULL after the last */
    const char         *help;
} example_option;

/** The largest SIZE or COUNT that is of use as a count. */
#define EXAMPLE_MOST_SIZE 1000000000

/**
 * Reads a command line, which is the same on all ranks, into `options`. Local; works from MPI_Init() on, so that options can
 * say how the library is opened.
 * @param[in,out] options  what an option leaves out keeps its value
 * @return FSDP_OK; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status example_options_read(int argc, char **argv, const example_option *rows, size_t n_rows, void *options);

/** Prints a line per option with its value in `defaults`, unless that is NULL or below `least`: not given, then. Local. */
void example_options_print(const example_option *rows, size_t n_rows, const void *defaults);

#endif
