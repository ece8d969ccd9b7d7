#include "tools/records/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_RUNS = 16 };

void text_add(text_builder *builder, const char *format, ...)
{
    va_list   arguments;
    const int room = (int)(builder->size - builder->used);

    va_start(arguments, format);
    const int length = vsnprintf(builder->text + builder->used, (size_t)room, format, arguments);
    va_end(arguments);
    builder->used += length < 0 ? 0 : length < room ? (size_t)length : (size_t)room - 1;
}

static void write_run(text_ranks *ranks)
{
    if (ranks->first < 0) {
        return;
    }
    if (ranks->runs == MOST_RUNS) {
        text_add(ranks->builder, ", ...");
    } else if (ranks->runs < MOST_RUNS) {
        text_add(ranks->builder, "%s%" PRId64, ranks->runs > 0 ? ", " : "", ranks->first);
        if (ranks->last > ranks->first) {
            text_add(ranks->builder, "%s%" PRId64, ranks->last > ranks->first + 1 ? " to " : ", ", ranks->last);
        }
    }
    ranks->runs++;
}

void text_ranks_add(text_ranks *ranks, int64_t rank)
{
    if (ranks->first >= 0 && rank == ranks->last + 1) {
        ranks->last = rank;
        return;
    }
    write_run(ranks);
    ranks->first = ranks->last = rank;
}

void text_ranks_end(text_ranks *ranks)
{
    write_run(ranks);
    ranks->first = -1;
}
