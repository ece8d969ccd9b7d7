/**
 * @file
 * Texts of bounded length, built piece by piece.
 */
#ifndef RECORDS_TEXT_H
#define RECORDS_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct text_builder {
    char  *text;
    size_t size, used;
} text_builder;

/** Appends as printf(); what does not fit is left out. */
void text_add(text_builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Numbers, one after the other: "rank 3", "ranks 3, 5 and 7 to 9". */
typedef struct text_ranks {
    text_builder *builder;
    int64_t       first, last; /* of the run that is not written yet; -1: none */
    size_t        runs;
} text_ranks;

void text_ranks_add(text_ranks *ranks, int64_t rank);
void text_ranks_end(text_ranks *ranks);

#endif
