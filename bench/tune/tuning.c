#include "bench/tune/tuning.h"

#include <stdlib.h>
#include <string.h>

#define US 1e6

static const char *const memories[BENCH_N_MEMORIES] = {"symmetric", "user"};

fsdp_algorithm bench_fastest(const bench_cell *cell)
{
    int best = FSDP_ALGO_AUTO;

    for (int a = FSDP_ALGO_AUTO + 1; a < BENCH_N_ALGORITHMS; a++) {
        const int counts = cell->seconds[a] > 0 && !(a == FSDP_ALGO_HALVES && cell->not_in_halves);

        if (counts && (best == FSDP_ALGO_AUTO || cell->seconds[a] < cell->seconds[best])) {
            best = a;
        }
    }
    return (fsdp_algorithm)best;
}

void bench_tuning_settle(bench_tuning *tuning)
{
    bench_cell *symmetric = tuning->cells[BENCH_ALLREDUCE][BENCH_MEMORY_SYMMETRIC];
    bench_cell *user      = tuning->cells[BENCH_ALLREDUCE][BENCH_MEMORY_USER];

    for (size_t i = 0; symmetric && i < tuning->n; i++) {
        const int both =
            bench_fastest(&symmetric[i]) == FSDP_ALGO_HALVES && bench_fastest(&user[i]) == FSDP_ALGO_HALVES;

        symmetric[i].not_in_halves = user[i].not_in_halves = !both;
    }
}

static void print_cell(const bench_cell *cell, FILE *file)
{
    (void)fprintf(file, "  %12zu", cell->bytes);
    for (int a = FSDP_ALGO_AUTO + 1; a < BENCH_N_ALGORITHMS; a++) {
        if (cell->seconds[a] > 0) {
            (void)fprintf(file, " %11.2f", cell->seconds[a] * US);
        } else {
            (void)fprintf(file, " %11s", "-");
        }
    }
    (void)fprintf(file, "  %s\n", fsdp_algorithm_text(bench_fastest(cell)));
}

void bench_tuning_print(const bench_tuning *tuning, FILE *file)
{
    for (int c = 0; c < BENCH_N_TUNED; c++) {
        for (int m = 0; m < BENCH_N_MEMORIES && tuning->cells[c][m]; m++) {
            (void)fprintf(file, "#\n# %s, %s memory: time(us)\n# %12s", bench_collective_name((bench_collective)c),
                          memories[m], "size(B)");
            for (int a = FSDP_ALGO_AUTO + 1; a < BENCH_N_ALGORITHMS; a++) {
                (void)fprintf(file, " %11s", fsdp_algorithm_text((fsdp_algorithm)a));
            }
            (void)fprintf(file, "  fastest\n");
            for (size_t i = 0; i < tuning->n; i++) {
                print_cell(&tuning->cells[c][m][i], file);
            }
        }
    }
}

/* Neighbours of the same algorithm are one row, up to the largest of them; the last one has no end. What no algorithm
   serves has no row, so that the library's own table decides. */
static void write_rows(const bench_tuning *tuning, int collective, int memory, const char *memory_text, FILE *file)
{
    const bench_cell *cells = tuning->cells[collective][memory];

    for (size_t i = 0; i < tuning->n; i++) {
        const fsdp_algorithm best = bench_fastest(&cells[i]);
        const int            last = i + 1 == tuning->n;

        if (best == FSDP_ALGO_AUTO || (!last && bench_fastest(&cells[i + 1]) == best)) {
            continue;
        }
        (void)fprintf(file, "%s %s %s ", bench_collective_name((bench_collective)collective), memory_text,
                      tuning->nodes > 1 ? "many" : "one");
        if (last) {
            (void)fprintf(file, "any %s\n", fsdp_algorithm_text(best));
        } else {
            (void)fprintf(file, "%zu %s\n", cells[i].bytes, fsdp_algorithm_text(best));
        }
    }
}

static int memories_are_alike(const bench_tuning *tuning, int collective)
{
    const bench_cell *symmetric = tuning->cells[collective][BENCH_MEMORY_SYMMETRIC];
    const bench_cell *user      = tuning->cells[collective][BENCH_MEMORY_USER];

    for (size_t i = 0; i < tuning->n; i++) {
        if (bench_fastest(&symmetric[i]) != bench_fastest(&user[i])) {
            return 0;
        }
    }
    return 1;
}

void bench_tuning_write(const bench_tuning *tuning, FILE *file)
{
    for (int c = 0; c < BENCH_N_TUNED; c++) {
        if (!tuning->cells[c][BENCH_MEMORY_SYMMETRIC]) {
            continue;
        }
        if (memories_are_alike(tuning, c)) {
            write_rows(tuning, c, BENCH_MEMORY_SYMMETRIC, "any", file);
            continue;
        }
        for (int m = 0; m < BENCH_N_MEMORIES; m++) {
            write_rows(tuning, c, m, memories[m], file);
        }
    }
}

/* The library's table as text, which the caller frees; NULL on failure. */
static char *library_table(const fsdp_context *ctx)
{
    char  *text  = NULL;
    size_t bytes = 0;
    FILE  *table = open_memstream(&text, &bytes);
    int    ok    = table && fsdp_algorithms_print(ctx, table) == FSDP_OK;

    ok = table && fclose(table) == 0 && ok;
    if (!ok) {
        free(text);
    }
    return ok ? text : NULL;
}

static int is_of_caches(const char *row)
{
    static const char WORD[] = "cached ";
    const size_t      name   = strcspn(row, " ");

    return strncmp(row + name + strspn(row + name, " "), WORD, sizeof WORD - 1) == 0;
}

int bench_tuning_write_library(const fsdp_context *ctx, int of_caches, FILE *file)
{
    char *const text = library_table(ctx);
    char       *next = NULL;

    for (char *line = text ? strtok_r(text, "\n", &next) : NULL; line; line = strtok_r(NULL, "\n", &next)) {
        if (*line != '#' && is_of_caches(line) == of_caches) {
            (void)fprintf(file, "%s\n", line);
        }
    }
    free(text);
    return text != NULL;
}
