/** @file Places of meshes on made-up worlds: every rank has one, groups stay on nodes, and it takes O(1) and O(log M). */
#include <stdlib.h>

#include "lib/mesh/lay.h"
#include "tests/support/unit_test.h"

typedef int world(int rank, int size); /* the host of a rank */

static int hosts_of_8(int rank, int size)
{
    (void)size;
    return rank / 8;
}

static int round_robin(int rank, int size)
{
    return rank % ((size + 7) / 8);
}

/* Of 1, 2, ... 9 ranks, and again. */
static int uneven(int rank, int size)
{
    const int round = rank / 45, ranks = rank % 45;
    int       host = 0;

    (void)size;
    for (int before = 0; before + host + 1 <= ranks; before += ++host) {
    }
    return round * 9 + host;
}

static int of_one(int rank, int size)
{
    (void)size;
    return rank;
}

static world *const WORLDS[] = {hosts_of_8, round_robin, uneven, of_one};
enum { N_WORLDS = sizeof WORLDS / sizeof WORLDS[0] };

typedef struct made_up {
    void       *scratch, *memory;
    fsdpi_nodes nodes;
    fsdpi_lay   lay;
} made_up;

static made_up make(world *host, int size)
{
    made_up   w     = {.scratch = malloc(fsdpi_nodes_scratch_bytes(size)), .memory = malloc(fsdpi_nodes_bytes(size))};
    uint64_t *hosts = w.scratch;

    assert_true(w.scratch != NULL && w.memory != NULL);
    for (int rank = 0; rank < size; rank++) {
        hosts[rank] = (uint64_t)host(rank, size);
    }
    fsdpi_nodes_divide(size, 0, 0, w.scratch, w.memory, &w.nodes);
    return w;
}

static void lay_out(made_up *w, int group)
{
    w->lay =
        (fsdpi_lay){.nodes = &w->nodes, .group = group, .groups = malloc(fsdpi_lay_length(&w->nodes) * sizeof(int))};
    assert_non_null(w->lay.groups);
    fsdpi_lay_fill(&w->lay);
}

static void release(made_up *w)
{
    free(w->lay.groups);
    free(w->memory);
    free(w->scratch);
}

/* How many groups have ranks on several nodes, counted place by place. */
static int count_crossing(const made_up *w, int size, int group)
{
    int crossing = 0;

    for (int first = 0; first < size; first += group) {
        const int node   = fsdpi_node_of(&w->nodes, fsdpi_lay_rank(&w->lay, first));
        bool      leaves = false;

        for (int place = first + 1; place < first + group; place++) {
            leaves |= fsdpi_node_of(&w->nodes, fsdpi_lay_rank(&w->lay, place)) != node;
        }
        crossing += leaves;
    }
    return crossing;
}

/* What is left over where each node has as many whole groups as it can. */
static int fewest_crossing(const made_up *w, int size, int group)
{
    int whole = 0;

    for (int m = 0; m < w->nodes.count; m++) {
        whole += fsdpi_node_size(&w->nodes, m) / group;
    }
    return size / group - whole;
}

static void check(world *host, int size, int group)
{
    made_up w = make(host, size);

    lay_out(&w, group);
    for (int rank = 0; rank < size; rank++) {
        const int place = fsdpi_lay_place(&w.lay, rank);

        assert_in_range(place, 0, size - 1);
        assert_int_equal(rank, fsdpi_lay_rank(&w.lay, place));
    }
    assert_int_equal(fewest_crossing(&w, size, group), fsdpi_lay_crossing(&w.lay));
    assert_int_equal(count_crossing(&w, size, group), fsdpi_lay_crossing(&w.lay));
    release(&w);
}

static void every_rank_has_a_place_and_groups_stay_on_nodes(void **state)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 24, 45, 90, 360, 1000};

    (void)state;
    for (int i = 0; i < N_WORLDS; i++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (int group = 1; group <= sizes[s]; group++) {
                if (sizes[s] % group == 0) {
                    check(WORLDS[i], sizes[s], group);
                }
            }
        }
    }
}

static void a_million_ranks_have_places(void **state)
{
    (void)state;
    check(hosts_of_8, 1000000, 8);
    check(round_robin, 200000, 4);
    check(uneven, 200000, 8);
    check(of_one, 200000, 2);
}

static void ranks_of_a_node_are_in_order_and_nodes_follow_each_other(void **state)
{
    made_up w = make(round_robin, 16); /* nodes of ranks 0, 2, 4 ... and 1, 3, 5 ... */

    (void)state;
    lay_out(&w, 4);
    for (int place = 0; place < 16; place++) {
        assert_int_equal(place < 8 ? 2 * place : 2 * (place - 8) + 1, fsdpi_lay_rank(&w.lay, place));
    }
    release(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_has_a_place_and_groups_stay_on_nodes),
        cmocka_unit_test(a_million_ranks_have_places),
        cmocka_unit_test(ranks_of_a_node_are_in_order_and_nodes_follow_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
