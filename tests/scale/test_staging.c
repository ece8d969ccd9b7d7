/* The least staging memory that an operation needs: of up to 16384 made-up nodes, and of nodes of up to 1024 ranks. */
#include <stdio.h>

#include "lib/sync/exchange.h"
#include "lib/sync/staging.h"
#include "tests/support/unit_test.h"

static const int NODES[] = {1, 2, 3, 42, 43, 64, 100, 1000, 1024, 4096, 10007, 16384};
enum { N_NODES = sizeof NODES / sizeof NODES[0], LEAST = 4096 /* that FSDP_STAGING_BYTES accepts */ };

static size_t staging_of(const fsdpi_nodes *nodes)
{
    const size_t least = fsdpi_staging_least(nodes);

    return least > LEAST ? least : LEAST;
}

/* Behind the slots is half of it, or a little more, in either lane. */
static size_t rest_of(size_t staging)
{
    return staging / 2;
}

static void the_records_of_any_number_of_nodes_carry(void **state)
{
    (void)state;
    for (int i = 0; i < N_NODES; i++) {
        const fsdpi_nodes       nodes    = {.count = NODES[i], .largest = 1, .smallest = 1};
        fsdpi_mailbox           box      = {.rest_bytes = rest_of(fsdpi_staging_short(staging_of(&nodes)))};
        const fsdpi_exchange    exchange = {.nodes = &nodes, .box = &box};
        const fsdpi_record_head record   = {.bytes = fsdpi_exchange_capacity(&exchange)};

        (void)printf("%6d nodes: %8zu bytes of staging, %5zu of payload\n", NODES[i], staging_of(&nodes),
                     (size_t)record.bytes);
        assert_in_range(record.bytes, 8, box.rest_bytes);
        assert_in_range((size_t)NODES[i] * fsdpi_record_bytes(&record), 1, box.rest_bytes);
    }
}

static void an_element_of_every_peer_fits(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= FSDPI_MOST_ON_NODE; ranks++) {
        const fsdpi_nodes nodes = {.count = 1, .largest = ranks, .smallest = ranks};

        assert_true(rest_of(staging_of(&nodes)) / 2 / (size_t)(ranks - 1) >= sizeof(double));
    }
}

static void staging_that_is_enough_stays_as_it_is(void **state)
{
    const fsdpi_nodes nodes = {.count = 20, .largest = 128, .smallest = 1};

    (void)state;
    assert_true(fsdpi_staging_least(&nodes) <= LEAST);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_records_of_any_number_of_nodes_carry),
        cmocka_unit_test(an_element_of_every_peer_fits),
        cmocka_unit_test(staging_that_is_enough_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
