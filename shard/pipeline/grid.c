#include "shard/pipeline/grid.h"

#include <math.h>
#include <string.h>

/* The columns of the longest action that computes. */
static int width_of(const fsdpi_schedule *schedule)
{
    int  width = 0;
    char text[FSDPI_ACTION_BYTES];

    for (int r = 0; r < schedule->ranks; r++) {
        for (size_t i = 0; i < schedule->rows[r].n; i++) {
            const fsdpi_action *a = &schedule->rows[r].list[i];
            const int           n = fsdpi_is_compute(a->work) ? (int)strlen(fsdpi_action_print(a, text)) : 0;
            width                 = n > width ? n : width;
        }
    }
    return width + 1;
}

static double shortest(const fsdpi_pace *pace)
{
    const double times[] = {pace->forward, pace->backward_input, pace->backward_weight};
    double       least   = 0;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        least = times[i] > 0 && (least <= 0 || times[i] < least) ? times[i] : least;
    }
    return least;
}

static void print_row(const fsdpi_actions *row, const fsdpi_rank_run *run, double unit, int width, FILE *file)
{
    char text[FSDPI_ACTION_BYTES];
    int  used = 0;

    for (size_t i = 0; i < row->n; i++) {
        const int at = unit > 0 ? (int)floor(run->begin[i] / unit + 1e-6) * width : used;

        if (fsdpi_is_compute(row->list[i].work)) {
            used +=
                fprintf(file, "%*s%s", at > used ? at - used : used > 0, "", fsdpi_action_print(&row->list[i], text));
        }
    }
}

void fsdpi_grid_print(const fsdpi_schedule *schedule, const fsdpi_pace *pace, const fsdpi_simulation *run, FILE *file)
{
    const int    width = width_of(schedule);
    const double unit  = shortest(pace);

    for (int r = 0; r < schedule->ranks; r++) {
        (void)fprintf(file, "rank %-4d ", r);
        print_row(&schedule->rows[r], &run->ranks[r], unit, width, file);
        (void)fprintf(file, "\n");
    }
}

/* Around the flaw, or where the rank stands. */
static void print_around(const fsdpi_actions *row, size_t at, bool marked, FILE *file)
{
    enum { BEFORE = 4, BEHIND = 3 };
    char         text[FSDPI_ACTION_BYTES];
    const size_t first = at > BEFORE ? at - BEFORE : 0, end = at + BEHIND < row->n ? at + BEHIND : row->n;

    (void)fprintf(file, "%s", first > 0 ? "... " : "");
    for (size_t i = first; i < end; i++) {
        (void)fprintf(file, i == at && marked ? ">%s< " : "%s ", fsdpi_action_print(&row->list[i], text));
    }
    (void)fprintf(file, "%s", end < row->n ? "..." : "");
}

void fsdpi_grid_print_flaw(const fsdpi_schedule *schedule, const fsdpi_simulation *run, const fsdpi_flaw *flaw,
                           FILE *file)
{
    for (int r = 0; r < schedule->ranks; r++) {
        const fsdpi_actions *row = &schedule->rows[r];
        const size_t         at  = r == flaw->rank ? flaw->at : run->ranks != NULL ? run->ranks[r].n_done : flaw->at;

        (void)fprintf(file, "rank %-4d ", r);
        print_around(row, at < row->n ? at : row->n, r == flaw->rank || (run->ranks != NULL && at < row->n), file);
        (void)fprintf(file, "\n");
    }
}
