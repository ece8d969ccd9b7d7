#include "tests/lib/topology/planned.h"

#include "tests/support/unit_test.h"

const fsdp_node *node;
fsdp_local_rank  ranks[MOST_RANKS];
fsdp_place       places[MOST_RANKS];

static fsdp_topology *topology;

void open_on(const char *name)
{
    topology = open_node(name);
    node     = fsdp_topology_node(topology);
}

int close_node(void **state)
{
    (void)state;
    fsdp_topology_close(topology);
    topology = NULL;
    return 0;
}

void plan(const char *const *masks, size_t n)
{
    make_ranks(node, masks, n, ranks);
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, n, places));
}
