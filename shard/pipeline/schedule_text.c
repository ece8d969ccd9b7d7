#define _POSIX_C_SOURCE 200809L /* getline() */

#include "shard/pipeline/schedule_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static bool no_memory(fsdpi_flaw *flaw)
{
    return fsdpi_flaw_set(flaw, -1, 0, "memory is short");
}

/* The cell without space around it. */
static const char *trim(const char *text, size_t *length)
{
    while (*length > 0 && strchr(" \t\r\n", text[*length - 1]) != NULL) {
        (*length)--;
    }
    while (*length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        (*length)--;
    }
    return text;
}

static bool read_cell(fsdpi_schedule *schedule, int rank, const char *text, size_t length, fsdpi_flaw *flaw)
{
    enum { SHOWN = 40 };
    fsdpi_action action;

    text = trim(text, &length);
    if (length == 0) {
        return true;
    }
    if (!fsdpi_action_parse(text, length, &action)) {
        return fsdpi_flaw_set(flaw, rank, schedule->rows[rank].n,
                              "'%.*s' is no action: a stage, then F, B, I, W, SEND_F, RECV_F, SEND_B or RECV_B and a "
                              "micro-batch, or UNSHARD, RESHARD or REDUCE_GRAD, as in 2F0",
                              (int)(length < SHOWN ? length : SHOWN), text);
    }
    return fsdpi_schedule_add(schedule, rank, action) || no_memory(flaw);
}

static bool read_line(fsdpi_schedule *schedule, int rank, const char *line, fsdpi_flaw *flaw)
{
    for (;;) {
        const size_t length = strcspn(line, ",\n");

        if (!read_cell(schedule, rank, line, length, flaw)) {
            return false;
        }
        if (line[length] != ',') {
            return true;
        }
        line += length + 1;
    }
}

static bool add_row(fsdpi_schedule *schedule)
{
    fsdpi_actions *rows = realloc(schedule->rows, ((size_t)schedule->ranks + 1) * sizeof *rows);

    if (rows == NULL) {
        return false;
    }
    rows[schedule->ranks] = (fsdpi_actions){0};
    schedule->rows        = rows;
    schedule->ranks++;
    return true;
}

static bool read_lines(fsdpi_schedule *schedule, FILE *file, char **line, fsdpi_flaw *flaw)
{
    size_t room = 0;

    for (ssize_t length = getline(line, &room, file); length >= 0; length = getline(line, &room, file)) {
        if (strlen(*line) != (size_t)length) {
            return fsdpi_flaw_set(flaw, -1, 0, "line %d has a byte 0: it is no text", schedule->ranks + 1);
        }
        if (!add_row(schedule)) {
            return no_memory(flaw);
        }
        if (!read_line(schedule, schedule->ranks - 1, *line, flaw)) {
            return false;
        }
    }
    if (ferror(file)) {
        return fsdpi_flaw_set(flaw, -1, 0, "the file cannot be read");
    }
    return true;
}

bool fsdpi_schedule_read(fsdpi_schedule *schedule, FILE *file, fsdpi_flaw *flaw)
{
    char *line = NULL;

    *schedule       = (fsdpi_schedule){0};
    const bool read = read_lines(schedule, file, &line, flaw);
    free(line);
    if (!read) {
        fsdpi_schedule_close(schedule);
    }
    return read;
}

void fsdpi_schedule_write(const fsdpi_schedule *schedule, FILE *file)
{
    char text[FSDPI_ACTION_BYTES];

    for (int r = 0; r < schedule->ranks; r++) {
        const fsdpi_actions *row = &schedule->rows[r];

        for (size_t i = 0; i < row->n; i++) {
            (void)fprintf(file, "%s%s", i > 0 ? "," : "", fsdpi_action_print(&row->list[i], text));
        }
        (void)fprintf(file, "\n");
    }
}
