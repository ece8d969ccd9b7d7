#include "lib/context/rows_by_cost.h"

#include <math.h>

#include "lib/sync/records.h"

static const fsdp_algorithm KINDS[] = {FSDP_ALGO_INLINE, FSDP_ALGO_RAILS, FSDP_ALGO_RING, FSDP_ALGO_STAGED};
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

enum {
    THROUGH_LEADERS = 1 << FSDP_ALGO_INLINE | 1 << FSDP_ALGO_STAGED,
    ALL_OF_THEM     = THROUGH_LEADERS | 1 << FSDP_ALGO_RAILS | 1 << FSDP_ALGO_RING
};

static size_t add_rows(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective, unsigned of,
                       fsdpi_row *rows, size_t most)
{
    size_t n = 0, up_to = 0;

    for (size_t bytes = 1; n < most && up_to != SIZE_MAX; bytes = up_to + 1) {
        up_to     = fsdpi_costs_same_until(costs, world, collective, of, bytes);
        rows[n++] = (fsdpi_row){.up_to      = up_to == SIZE_MAX ? UINT64_MAX : up_to,
                                .collective = (uint8_t)collective,
                                .memory     = FSDPI_ANY,
                                .nodes      = FSDPI_MANY,
                                .algorithm  = (uint8_t)fsdpi_costs_cheapest(costs, world, collective, of, bytes)};
    }
    return n;
}

/* Behind the rows of all algorithms come those for calls that the rails cannot serve. */
size_t fsdpi_rows_by_cost(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_row *rows, size_t most)
{
    size_t n = 0;

    for (int c = FSDPI_ALLGATHER; c <= FSDPI_ALLTOALL; c++) {
        n += add_rows(costs, world, (fsdpi_collective_id)c, ALL_OF_THEM, rows + n, most - n);
        if (c != FSDPI_ALLTOALL) {
            n += add_rows(costs, world, (fsdpi_collective_id)c, THROUGH_LEADERS, rows + n, most - n);
        }
    }
    return n;
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
                  "1/beta = %.2f GB/s;\n# agreements %s\n",
                  world->nodes, world->each, costs->alpha_m * 1e6, costs->gap * 1e6, 1e-9 / costs->beta,
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
