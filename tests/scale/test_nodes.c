/* Nodes of made-up worlds: as a plain reference divides them, and of a million ranks, for which that would take an hour. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/node/nodes.h"
#include "tests/support/unit_test.h"

/* ---- worlds ------------------------------------------------------------------------------------------------------- */

/* The host of a rank, of `size`. */
typedef uint64_t (*world)(int rank, int size);

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    return x ^ x >> 27;
}

static uint64_t one_host(int rank, int size)
{
    (void)rank;
    (void)size;
    return 7;
}

static uint64_t hosts_of_one(int rank, int size)
{
    (void)size;
    return (uint64_t)rank;
}

static uint64_t filled_by_64(int rank, int size)
{
    (void)size;
    return mix((uint64_t)rank / 64);
}

static uint64_t round_robin(int rank, int size)
{
    const int hosts = size < 7 ? size : size / 7; /* the first ones have an eighth rank, or more */

    return mix((uint64_t)(rank % hosts));
}

/* Of 1, 2, 3, ... ranks. */
static uint64_t uneven(int rank, int size)
{
    uint64_t host = 0;

    (void)size;
    for (int end = 1; end <= rank; end += (int)++host + 1) {
    }
    return host << 32; /* numbers whose lower halves are equal */
}

static uint64_t scattered(int rank, int size)
{
    return mix((uint64_t)rank + 1) % (uint64_t)(size / 5 + 1);
}

static const world WORLDS[] = {one_host, hosts_of_one, filled_by_64, round_robin, uneven, scattered};
enum { N_WORLDS = sizeof WORLDS / sizeof WORLDS[0], MOST_COMPARED = 200 };

/* ---- division ----------------------------------------------------------------------------------------------------- */

typedef struct division {
    uint64_t   *hosts; /* and the rest of the scratch memory */
    void       *memory;
    fsdpi_nodes nodes;
} division;

static division divide(world host, int size, int rank, int divided)
{
    division d = {.hosts = malloc(fsdpi_nodes_scratch_bytes(size)), .memory = malloc(fsdpi_nodes_bytes(size))};

    assert_true(d.hosts != NULL && d.memory != NULL);
    for (int r = 0; r < size; r++) {
        d.hosts[r] = host(r, size);
    }
    fsdpi_nodes_divide(size, rank, divided, d.hosts, d.memory, &d.nodes);
    return d;
}

static void release(division *d)
{
    free(d->hosts);
    free(d->memory);
}

/* The lowest rank of the node of each rank: a node begins where a multiple of `divided` ranks of its host are before. */
static void find_lowest(const uint64_t *hosts, int size, int divided, int *lowest)
{
    for (int r = 0; r < size; r++) {
        int before = 0, last = r;

        for (int q = 0; q < r; q++) {
            before += hosts[q] == hosts[r];
            last = hosts[q] == hosts[r] ? q : last;
        }
        lowest[r] = (divided == 0 ? before : before % divided) == 0 ? r : lowest[last];
    }
}

static void check_against_reference(world host, int size, int divided)
{
    division           d     = divide(host, size, size / 2, divided);
    const fsdpi_nodes *nodes = &d.nodes;
    int                count = 0, largest = 0, smallest = size, member = 0, before = 0, lowest[MOST_COMPARED];

    find_lowest(d.hosts, size, divided, lowest);
    for (int r = 0; r < size; r++) {
        if (lowest[r] != r) {
            continue;
        }
        int n = 0;
        before += count < nodes->mine ? fsdpi_node_size(nodes, count) : 0;
        for (int q = r; q < size; q++) {
            if (lowest[q] == r) {
                assert_int_equal(count, fsdpi_node_of(nodes, q));
                assert_int_equal(n, fsdpi_position_of(nodes, q));
                assert_int_equal(q, fsdpi_rank_at(nodes, count, n));
                n++;
                member++;
            }
        }
        assert_int_equal(n, fsdpi_node_size(nodes, count));
        largest  = n > largest ? n : largest;
        smallest = n < smallest ? n : smallest;
        count++;
    }
    assert_int_equal(size, member);
    assert_int_equal(before, nodes->before);
    assert_int_equal(count, nodes->count);
    assert_int_equal(largest, nodes->largest);
    assert_int_equal(smallest, nodes->smallest);
    assert_int_equal(fsdpi_node_of(nodes, size / 2), nodes->mine);
    assert_int_equal(fsdpi_position_of(nodes, size / 2), nodes->position);
    assert_int_equal(fsdpi_node_size(nodes, nodes->mine), nodes->size);
    release(&d);
}

static void nodes_are_those_of_the_plain_reference(void **state)
{
    static const int SIZES[] = {1, 2, 3, 5, 8, 13, 64, 65, MOST_COMPARED}, DIVIDED[] = {0, 1, 2, 3, 5, 8, 64, 1000};

    (void)state;
    for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s++) {
        for (size_t k = 0; k < sizeof DIVIDED / sizeof DIVIDED[0]; k++) {
            for (int w = 0; w < N_WORLDS; w++) {
                check_against_reference(WORLDS[w], SIZES[s], DIVIDED[k]);
            }
        }
    }
}

static void a_host_of_many_ranks_is_several_nodes(void **state)
{
    division d = divide(one_host, 5000, 2500, fsdpi_nodes_divisor(0));

    (void)state;
    assert_int_equal(5, d.nodes.count);
    assert_int_equal(FSDPI_MOST_ON_NODE, d.nodes.largest);
    assert_int_equal(5000 - 4 * FSDPI_MOST_ON_NODE, d.nodes.smallest);
    release(&d);
    assert_int_equal(8, fsdpi_nodes_divisor(8));
    assert_int_equal(FSDPI_MOST_ON_NODE, fsdpi_nodes_divisor(1000000));
    assert_int_equal(5, fsdpi_positions(5));
    assert_int_equal(FSDPI_MOST_ON_NODE, fsdpi_positions(1000000));
}

/* Every rank is found again where it is said to be, and no seat is there that nobody has. */
static void check_all_seats(const fsdpi_nodes *nodes, int size)
{
    int seats = 0;

    for (int r = 0; r < size; r += size / 1000) {
        assert_int_equal(r, fsdpi_rank_at(nodes, fsdpi_node_of(nodes, r), fsdpi_position_of(nodes, r)));
    }
    for (int m = 0; m < nodes->count; m++) {
        seats += fsdpi_node_size(nodes, m);
    }
    assert_int_equal(size, seats);
}

/* The time limit of this program would end a search that grows as the square of the ranks. */
static void a_million_ranks_are_divided(void **state)
{
    (void)state;
    for (int size = 1000; size <= 1000000; size *= 10) {
        const clock_t begin = clock();

        for (int w = 0; w < N_WORLDS; w++) {
            if (WORLDS[w] == uneven) {
                continue; /* to make it up takes longer */
            }
            for (int divided = 0; divided <= 8; divided += 8) {
                division d = divide(WORLDS[w], size, size - 1, divided);

                assert_int_equal(size - 1, fsdpi_rank_at(&d.nodes, d.nodes.mine, d.nodes.position));
                check_all_seats(&d.nodes, size);
                release(&d);
            }
        }
        (void)printf("%7d ranks: %.3f ms of CPU to find their nodes\n", size,
                     1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC / 10);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_those_of_the_plain_reference),
        cmocka_unit_test(a_host_of_many_ranks_is_several_nodes),
        cmocka_unit_test(a_million_ranks_are_divided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
