/* What a context, and a symmetric buffer in it, hold on a rank: by the formulas that budgets count with, up to a million ranks. */
#include <stdio.h>

#include "lib/context/buffer_alloc.h"
#include "lib/context/init.h"
#include "lib/node/nodes.h"
#include "lib/sync/rails.h"
#include "tests/support/unit_test.h"

/* Which rank is where, for any placement: there once, and counted for each rank of a node. */
static size_t once_per_node(int size)
{
    return fsdpi_nodes_bytes(size);
}

static void a_context_holds_little_of_each_rank(void **state)
{
    enum { FIXED_BYTES = 424 << 10 };

    (void)state;
    (void)printf("  ranks: bytes of a context | once per node | on each rank | of a buffer\n");
    for (int size = 1000; size <= 1000000; size *= 10) {
        const size_t all = fsdpi_context_bookkeeping(size, 1024), common = once_per_node(size), own = all - common;

        (void)printf("%7d: %19zu | %13zu | %12zu | %11zu\n", size, all, common, own,
                     fsdpi_buffer_bookkeeping(FSDP_BUFFER_PER_RANK, size));
        assert_in_range(common, 0, (size_t)(300 << 10) + 4 * (size_t)size);
        assert_in_range(own, 0, FIXED_BYTES);
    }
    assert_in_range(fsdpi_rails_bookkeeping(1000000), 0, FIXED_BYTES);
}

/* Its recorder with the default of FSDP_RECORD included. What a node has once is divided by its ranks. */
static void a_hundred_thousand_ranks_take_less_than_a_megabyte_each(void **state)
{
    enum { SIZE = 100000, MOST_BYTES = 1000000 };
    const size_t all = fsdpi_context_bookkeeping(SIZE, 1024), common = once_per_node(SIZE);

    (void)state;
    for (size_t on_node = 1; on_node <= 64; on_node *= 8) {
        (void)printf("  %d ranks, %zu on each node: %zu bytes per rank\n", SIZE, on_node,
                     all - common + common / on_node);
        assert_in_range(all - common + common / on_node, 0, MOST_BYTES);
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
        cmocka_unit_test(a_hundred_thousand_ranks_take_less_than_a_megabyte_each),
        cmocka_unit_test(a_buffer_of_host_memory_holds_the_same_for_any_number_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
