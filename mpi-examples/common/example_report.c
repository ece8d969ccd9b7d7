#include "example_report.h"

#include <inttypes.h>
#include <stdio.h>

void example_print_node(const example_node *node, size_t blas_threads)
{
    printf("; on this node %d rank%s on %d core%s", node->ranks, node->ranks == 1 ? "" : "s", node->cores,
           node->cores == 1 ? "" : "s");
    if (blas_threads) {
        printf(", %zu BLAS thread%s each", blas_threads, blas_threads > 1 ? "s" : "");
    }
    putchar('\n');
}

static void print_row(const char *name, size_t bytes, const size_t *alone)
{
    printf("  %-26s %14zu", name, bytes);
    if (alone) {
        printf(" %14zu", *alone);
    }
    putchar('\n');
}

void example_print_budget(const fsdp_budget *budget, int ranks, const fsdp_budget *alone)
{
    int kind;

    printf("\nbudget per rank, in bytes    ");
    if (alone) {
        printf("%5d rank%c%15s", ranks, ranks > 1 ? 's' : ' ', "1 rank");
    }
    putchar('\n');
    for (kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        print_row(fsdp_memory_name((fsdp_memory_kind)kind), budget->bytes[kind], alone ? &alone->bytes[kind] : NULL);
    }
    print_row("total", budget->total, alone ? &alone->total : NULL);
    if (budget->mean_total < budget->total) { /* whole tensors make ranks differ */
        print_row("total of the mean rank", budget->mean_total, alone ? &alone->mean_total : NULL);
    }
    printf("  %-26s %14zu  %zu per parameter\n\n", "unsharded state", budget->unsharded,
           budget->unsharded / budget->parameters);
    (void)fflush(stdout);
}

void example_print_memory(const fsdp_memory *memory, const fsdp_budget *budget)
{
    printf("memory held %zu bytes, at most %zu; budget %zu (%+.2f%%)\n", memory->current_total, memory->peak_total,
           budget->total, 100 * ((double)memory->peak_total / (double)budget->total - 1));
}

void example_print_exact_loss(size_t step, double loss)
{
    printf("exact step %zu loss %a = %.12f\n", step, loss, loss);
}

void example_print_exact_hash(uint64_t hash)
{
    printf("exact parameters %016" PRIx64 "\n", hash);
}
