/**
 * @file
 * Results as files: one JSON object or one CSV line per row, under the same names.
 */
#ifndef BENCH_RECORDS_H
#define BENCH_RECORDS_H

#include <stdio.h>

#include "bench/base/options.h"
#include "bench/base/world.h"

/** One value of a row. A text where `text` is not NULL; a number that is below 0 is unknown: null, or nothing in CSV. */
typedef struct bench_field {
    const char *name;
    const char *text;
    double      number;
} bench_field;

typedef struct bench_records {
    FILE  *json, *csv; /* NULL where not asked for, and on all ranks but 0 */
    int    begun;      /* the header is written, and the end of the file is not */
    size_t rows;
} bench_records;

/** FSDP_ERR_ARG on all ranks if the file of an option is given, and cannot be written. Collective. */
fsdp_status bench_file_possible(const bench_world *world, const char *option, const char *path);

/** Opens the files. Collective. */
fsdp_status bench_records_open(bench_records *records, const bench_world *world, const bench_options *options);

/** What is said once, for the JSON file. Before all rows. Local, as all that follows. */
void bench_records_header(bench_records *records, const bench_field *fields, size_t n);

/** Every row has the same names in the same order. */
void bench_records_row(bench_records *records, const bench_field *fields, size_t n);

/** What all rows come to, for the JSON file. Behind them, once or not at all. */
void bench_records_summary(bench_records *records, const bench_field *fields, size_t n);

/** Ends the files. Collective: FSDP_ERR_ARG on all ranks if one could not be written to the end. */
fsdp_status bench_records_close(bench_records *records, const bench_world *world);

#endif
