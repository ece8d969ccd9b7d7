#include "shard/pipeline/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool fsdpi_schedule_open(fsdpi_schedule *schedule, int ranks)
{
    *schedule = (fsdpi_schedule){.ranks = ranks, .rows = calloc((size_t)ranks, sizeof *schedule->rows)};
    return schedule->rows != NULL;
}

static bool make_room(fsdpi_actions *row)
{
    const size_t room = row->room == 0 ? 64 : 2 * row->room;

    if (row->n < row->room) {
        return true;
    }
    fsdpi_action *list = realloc(row->list, room * sizeof *list);
    if (list != NULL) {
        row->list = list;
        row->room = room;
    }
    return list != NULL;
}

bool fsdpi_schedule_add(fsdpi_schedule *schedule, int rank, fsdpi_action action)
{
    fsdpi_actions *row = &schedule->rows[rank];

    if (!make_room(row)) {
        return false;
    }
    row->list[row->n++] = action;
    schedule->stages    = action.stage >= schedule->stages ? action.stage + 1 : schedule->stages;
    if (fsdpi_has_micro(action.work) && action.micro >= schedule->micros) {
        schedule->micros = action.micro + 1;
    }
    return true;
}

void fsdpi_schedule_close(fsdpi_schedule *schedule)
{
    for (int r = 0; schedule->rows != NULL && r < schedule->ranks; r++) {
        free(schedule->rows[r].list);
    }
    free(schedule->rows);
    *schedule = (fsdpi_schedule){0};
}

bool fsdpi_schedule_is_lowered(const fsdpi_schedule *schedule)
{
    for (int r = 0; r < schedule->ranks; r++) {
        for (size_t i = 0; i < schedule->rows[r].n; i++) {
            if (!fsdpi_is_compute(schedule->rows[r].list[i].work)) {
                return true;
            }
        }
    }
    return false;
}

bool fsdpi_flaw_set(fsdpi_flaw *flaw, int rank, size_t at, const char *format, ...)
{
    va_list arguments;

    flaw->rank = rank;
    flaw->at   = at;
    va_start(arguments, format);
    (void)vsnprintf(flaw->text, sizeof flaw->text, format, arguments);
    va_end(arguments);
    return false;
}
