#include "lib/context/rows_by_cost.h"

#include <math.h>

#include "lib/sync/records.h"

static const fsdp_algorithm KINDS[] = {FSDP_ALGO_INLINE, FSDP_ALGO_HALVES, FSDP_ALGO_RAILS, FSDP_ALGO_RING,
                                       FSDP_ALGO_STAGED};
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

enum {
    THROUGH_LEADERS = 1 << FSDP_ALGO_INLINE | 1 << FSDP_ALGO_HALVES | 1 << FSDP_ALGO_STAGED,
    ALL_OF_THEM     = THROUGH_LEADERS | 1 << FSDP_ALGO_RAILS | 1 << FSDP_ALGO_RING
};

typedef struct row_list {
    fsdpi_row *rows;
    size_t     n, most;
} row_list;

/* Adds what is cheapest from `bytes` on; where that ends, or at `last`, its row does. */
static fsdpi_row *add_row(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                          unsigned of, size_t bytes, size_t last, row_list *list)
{
    const size_t up_to = fsdpi_costs_same_until(costs, world, collective, of, bytes);
    fsdpi_row   *row   = &list->rows[list->n++];

    *row = (fsdpi_row){.up_to      = up_to < last ? up_to : last,
                       .collective = (uint8_t)collective,
                       .nodes      = FSDPI_MANY,
                       .algorithm  = (uint8_t)fsdpi_costs_cheapest(costs, world, collective, of, bytes)};
    return row;
}

/* After a row of the rails, what calls take that the rails cannot serve. Other rows are the same for these. */
static void add_others(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective, size_t first,
                       size_t last, row_list *list)
{
    for (size_t bytes = first, end = 0; list->n < list->most && end != last; bytes = end + 1) {
        end = add_row(costs, world, collective, THROUGH_LEADERS, bytes, last, list)->up_to;
    }
}

static void add_collective(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                           int memory, row_list *list)
{
    const size_t first = list->n;

    for (size_t bytes = 1, end = 0; list->n < list->most && end != SIZE_MAX; bytes = end + 1) {
        const fsdpi_row *row = add_row(costs, world, collective, ALL_OF_THEM, bytes, SIZE_MAX, list);

        end = row->up_to;
        if (collective != FSDPI_ALLTOALL && (THROUGH_LEADERS >> row->algorithm & 1) == 0) {
            add_others(costs, world, collective, bytes, end, list);
        }
    }
    for (size_t i = first; i < list->n; i++) {
        list->rows[i].memory = (uint8_t)memory;
    }
}

size_t fsdpi_rows_by_cost(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_row *rows, size_t most)
{
    const fsdpi_costs cached  = fsdpi_costs_of_cached(costs);
    const bool        differs = world->nodes == 2 && world->each == 1 && costs->whole < costs->whole_cached;
    row_list          list    = {.rows = rows, .most = most};

    for (int c = FSDPI_ALLGATHER; c <= FSDPI_ALLTOALL; c++) {
        if (c == FSDPI_ALLREDUCE && differs) { /* first, since all other rows would serve it too */
            add_collective(&cached, world, FSDPI_ALLREDUCE, FSDPI_CACHED, &list);
        }
        add_collective(costs, world, (fsdpi_collective_id)c, FSDPI_ANY, &list);
    }
    return list.n;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static const char *name_of(int collective)
{
    static const char *const NAMES[] = {"", "allgather", "reduce_scatter", "allreduce", "broadcast", "reduce"};

    return NAMES[collective];
}

static void print_size(FILE *file, size_t bytes)
{
    if (bytes >= (size_t)1 << 20) {
        (void)fprintf(file, "%5zu MiB", bytes >> 20);
    } else if (bytes >= (size_t)1 << 10) {
        (void)fprintf(file, "%5zu KiB", bytes >> 10);
    } else {
        (void)fprintf(file, "%5zu B  ", bytes);
    }
}

static void print_costs(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                        size_t bytes, FILE *file)
{
    (void)fprintf(file, "# %-14s ", name_of(collective));
    print_size(file, bytes);
    for (int k = 0; k < N_KINDS; k++) {
        const double cost = fsdpi_cost(costs, world, collective, KINDS[k], bytes);

        if (isinf(cost)) {
            (void)fprintf(file, " %12s", "-");
        } else {
            (void)fprintf(file, " %12.1f", cost * 1e6);
        }
    }
    (void)fprintf(file, "  %s\n",
                  fsdp_algorithm_text(fsdpi_costs_cheapest(costs, world, collective, ALL_OF_THEM, bytes)));
}

void fsdpi_costs_print(const fsdpi_costs *costs, const fsdpi_world *world, FILE *file)
{
    (void)fprintf(file,
                  "# here: M = %d, L = %d, alpha_m = %.2f us, and %.2f us for each further message sent with it, "
                  "1/beta = %.2f GB/s;\n# %.2f us on the rails, where all ranks of a node wait for a message each; "
                  "agreements %s\n",
                  world->nodes, world->each, costs->alpha_m * 1e6, costs->gap * 1e6, 1e-9 / costs->beta,
                  costs->alpha_r * 1e6,
                  fsdpi_costs_in_pairs(costs, world) ? "in pairs of nodes, each with each other one at once"
                                                     : "in rounds, ceil(log2 M) of them");
    (void)fprintf(file, "# %-14s %9s", "microseconds", "S");
    for (int k = 0; k < N_KINDS; k++) {
        (void)fprintf(file, " %12s", fsdp_algorithm_text(KINDS[k]));
    }
    (void)fprintf(file, "  chosen\n");
    for (int c = FSDPI_ALLGATHER; c <= FSDPI_REDUCE; c++) {
        for (size_t bytes = 8; bytes <= (size_t)1 << 26; bytes *= 8) {
            print_costs(costs, world, (fsdpi_collective_id)c, bytes, file);
        }
    }
}
