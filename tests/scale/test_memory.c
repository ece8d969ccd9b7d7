/* What a context, and a symmetric buffer in it, hold on a rank: by the formulas that budgets count with, up to a million ranks. */
#include <stdio.h>

#include "lib/context/buffer_alloc.h"
#include "lib/context/init.h"
#include "lib/node/nodes.h"
#include "lib/sync/mailbox.h"
#include "lib/sync/rails.h"
#include "tests/support/unit_test.h"

enum { ALIGNMENTS = 1024 }; /* BYTES, by which a few arrays are longer than their elements */

/* Without what is kept of transfers between nodes, which the rails have to bound. */
static size_t context_bytes(int size)
{
    return fsdpi_context_bookkeeping(size) - fsdpi_rails_bookkeeping(size);
}

/* The map of ranks, and what has landed: there once, and counted for each rank of a node. */
static size_t once_per_node(int size)
{
    return fsdpi_nodes_bytes(size) + (size_t)size * sizeof(fsdpi_landing);
}

static void a_context_holds_little_of_each_rank(void **state)
{
    const size_t fixed = context_bytes(1), lists = (size_t)FSDPI_MOST_ON_NODE * (3 * sizeof(void *) + sizeof(uint16_t));

    (void)state;
    (void)printf("  ranks: bytes of a context | once per node | on each rank | of a buffer | with transfers\n");
    for (int size = 1000; size <= 1000000; size *= 10) {
        const size_t all = context_bytes(size), common = once_per_node(size), own = all - common;
        const size_t pointers =
            (size_t)(size > 2 * FSDPI_MOST_ON_NODE ? size : 2 * FSDPI_MOST_ON_NODE) * sizeof(void *);

        (void)printf("%7d: %19zu | %13zu | %12zu | %11zu | %14zu\n", size, all, common, own,
                     fsdpi_buffer_bookkeeping(FSDP_BUFFER_PER_RANK, size), fsdpi_context_bookkeeping(size));
        assert_in_range(common, 0, 32 * (size_t)size + sizeof(int));
        assert_in_range(own, fixed, fixed + lists + pointers + ALIGNMENTS);
    }
}

static void a_buffer_of_host_memory_holds_the_same_for_any_number_of_ranks(void **state)
{
    static const fsdp_buffer_kind KINDS[] = {FSDP_BUFFER_PER_RANK, FSDP_BUFFER_PER_NODE};

    (void)state;
    for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
        for (int size = 1; size <= 1000000; size *= 10) {
            assert_int_equal(fsdpi_buffer_bookkeeping(KINDS[k], 1), fsdpi_buffer_bookkeeping(KINDS[k], size));
        }
    }
    assert_int_equal(fsdpi_buffer_bookkeeping(FSDP_BUFFER_DEVICE, FSDPI_MOST_ON_NODE),
                     fsdpi_buffer_bookkeeping(FSDP_BUFFER_DEVICE, 1000000));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_holds_little_of_each_rank),
        cmocka_unit_test(a_buffer_of_host_memory_holds_the_same_for_any_number_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
