/** @file What each collective sends between nodes is what its algorithm's formula says: every message and every byte. */
#include "tests/collectives/counted.h"
#include "tests/support/mpi_test.h"

static void on_one_node_nothing_is_sent(void **state)
{
    (void)state;
    count_on_nodes_of(0);
}

static void on_nodes_of_one_rank(void **state)
{
    (void)state;
    count_on_nodes_of(1);
}

static void on_nodes_of_two_ranks(void **state)
{
    (void)state;
    count_on_nodes_of(2);
}

static void on_nodes_of_three_ranks(void **state)
{
    (void)state;
    count_on_nodes_of(3);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_one_node_nothing_is_sent),
        cmocka_unit_test(on_nodes_of_one_rank),
        cmocka_unit_test(on_nodes_of_two_ranks),
        cmocka_unit_test(on_nodes_of_three_ranks),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
