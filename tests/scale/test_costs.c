/* What is chosen across nodes, by cost: on made-up worlds of up to 16384 nodes, and with the fewest messages there are. */
#include <math.h>
#include <string.h>

#include "lib/context/costs.h"
#include "lib/context/rows_by_cost.h"
#include "lib/context/table.h"
#include "lib/sync/pairs.h"
#include "lib/sync/records.h"
#include "tests/support/unit_test.h"

static const int        NODES[] = {2, 3, 4, 5, 8, 15, 16, 17, 64, 100, 256, 1000, 1024, 4096, 10007, 16384};
static const int        EACH[]  = {1, 2, 8, 64};
static const fsdpi_link LINKS[] = {{0},
                                   {.rate = 2.5e9, .alpha = 1e-6, .gap = 0.2e-6},
                                   {.rate = 1.2e9, .alpha = 15e-6, .gap = 3e-6},
                                   {.rate = 1.18e8, .alpha = 40e-6, .gap = 40e-6},
                                   {.rate = 5e10, .alpha = 1.5e-6, .gap = 0}};
enum {
    N_NODES = sizeof NODES / sizeof NODES[0],
    N_EACH  = sizeof EACH / sizeof EACH[0],
    N_LINKS = sizeof LINKS / sizeof LINKS[0]
};
enum { STAGING = 4 << 20, INLINE = 1 << FSDP_ALGO_INLINE, STAGED = 1 << FSDP_ALGO_STAGED };
enum { LEADERS = INLINE | STAGED | 1 << FSDP_ALGO_HALVES, ALL = LEADERS | 1 << FSDP_ALGO_RAILS | 1 << FSDP_ALGO_RING };

static void for_each_world(void (*check)(const fsdpi_costs *costs, const fsdpi_world *world))
{
    for (int l = 0; l < N_LINKS; l++) {
        for (int m = 0; m < N_NODES; m++) {
            for (int e = 0; e < N_EACH; e++) {
                const fsdpi_world world = {.nodes = NODES[m], .each = EACH[e], .staging_bytes = STAGING};
                fsdpi_costs       costs = fsdpi_costs_of(&LINKS[l], &world);

                check(&costs, &world);
                costs.gamma /= 3; /* a faster memory */
                check(&costs, &world);
            }
        }
    }
}

/* ---- the rows ------------------------------------------------------------------------------------------------------ */

static fsdp_algorithm first_match(const fsdpi_row *rows, size_t n, int collective, int memory, unsigned able,
                                  size_t bytes)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].collective == collective && (rows[i].memory & memory) != 0 && bytes <= rows[i].up_to &&
            (able >> rows[i].algorithm & 1) != 0) {
            return (fsdp_algorithm)rows[i].algorithm;
        }
    }
    return FSDP_ALGO_STAGED;
}

static void check_collective(const fsdpi_row *rows, size_t n, const fsdpi_costs *costs, const fsdpi_world *world, int c,
                             int memory)
{
    for (size_t bytes = 1; bytes < (size_t)1 << 34; bytes = bytes * 3 / 2 + 1) {
        for (unsigned of = ALL; of != 0; of = of == ALL ? LEADERS : 0) {
            const fsdpi_collective_id id     = (fsdpi_collective_id)c;
            const fsdp_algorithm      chosen = first_match(rows, n, c, memory, of, bytes);
            const double least = fsdpi_cost(costs, world, id, fsdpi_costs_cheapest(costs, world, id, of, bytes), bytes);

            if (fsdpi_cost(costs, world, id, chosen, bytes) > 1.05 * least) {
                fail_msg("%d nodes of %d, collective %d of %zu bytes: '%s' costs %g us, another %g", world->nodes,
                         world->each, c, bytes, fsdp_algorithm_text(chosen),
                         1e6 * fsdpi_cost(costs, world, id, chosen, bytes), 1e6 * least);
            }
        }
    }
}

static void check_rows(const fsdpi_costs *costs, const fsdpi_world *world)
{
    const fsdpi_costs cached  = fsdpi_costs_of_cached(costs);
    const bool        differs = world->nodes == 2 && world->each == 1 && costs->whole < costs->whole_cached;
    fsdpi_row         rows[FSDPI_MOST_ROWS];
    const size_t      n = fsdpi_rows_by_cost(costs, world, rows, FSDPI_MOST_ROWS);

    assert_true(n <= FSDPI_MOST_ROWS / 4); /* a tuning file has these behind its own, and those for one node */
    for (int c = FSDPI_ALLGATHER; c <= FSDPI_REDUCE; c++) {
        check_collective(rows, n, costs, world, c, FSDPI_FROM_SYMMETRIC);
        check_collective(rows, n, costs, world, c, FSDPI_FROM_USER);
        check_collective(rows, n, c == FSDPI_ALLREDUCE && differs ? &cached : costs, world, c, FSDPI_FROM_CACHES);
    }
}

static void the_rows_name_what_costs_least(void **state)
{
    (void)state;
    for_each_world(check_rows);
}

static void check_growth(const fsdpi_costs *costs, const fsdpi_world *world)
{
    static const fsdp_algorithm KINDS[] = {FSDP_ALGO_INLINE, FSDP_ALGO_HALVES, FSDP_ALGO_RAILS, FSDP_ALGO_RING,
                                           FSDP_ALGO_STAGED};

    for (int c = FSDPI_ALLGATHER; c <= FSDPI_ALLTOALL; c++) {
        for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
            double before = 0;

            for (size_t bytes = 1; bytes < (size_t)1 << 30; bytes *= 2) {
                const double cost = fsdpi_cost(costs, world, (fsdpi_collective_id)c, KINDS[k], bytes);
                assert_true(cost > 0 && cost >= 0.9 * before); /* a copy gives way to a message somewhere */
                before = cost;
            }
        }
    }
}

static void longer_vectors_cost_more(void **state)
{
    (void)state;
    for_each_world(check_growth);
}

static void check_room(const fsdpi_costs *costs, const fsdpi_world *world)
{
    for (int c = FSDPI_ALLGATHER; c <= FSDPI_ALLTOALL; c++) {
        const fsdpi_collective_id id   = (fsdpi_collective_id)c;
        const size_t              most = fsdpi_costs_most_inline(costs, world, id);

        assert_true(isfinite(fsdpi_cost(costs, world, id, FSDP_ALGO_INLINE, most)));
        assert_true(isinf(fsdpi_cost(costs, world, id, FSDP_ALGO_INLINE, most + 1)));
    }
    assert_int_equal(fsdpi_costs_in_pairs(costs, world), fsdpi_costs_most_inline(costs, world, FSDPI_ALLTOALL) > 0);
}

static void what_does_not_fit_is_not_inline(void **state)
{
    (void)state;
    for_each_world(check_room);
}

/* ---- what is to be expected ---------------------------------------------------------------------------------------- */

static fsdp_algorithm cheapest(int nodes, int each, fsdpi_collective_id collective, size_t bytes)
{
    const fsdpi_link  link  = {.rate = 2.5e9, .alpha = 1e-6, .gap = 0.2e-6};
    const fsdpi_world world = {.nodes = nodes, .each = each, .staging_bytes = STAGING};
    const fsdpi_costs costs = fsdpi_costs_of(&link, &world);

    return fsdpi_costs_cheapest(&costs, &world, collective, ALL, bytes);
}

static void two_nodes_send_with_the_agreement_as_long_as_there_is_room(void **state)
{
    (void)state;
    for (size_t bytes = 8; bytes <= (size_t)256 << 10; bytes *= 2) {
        assert_int_equal(FSDP_ALGO_INLINE, cheapest(2, 1, FSDPI_ALLGATHER, bytes));
        assert_int_equal(FSDP_ALGO_INLINE, cheapest(2, 1, FSDPI_REDUCE_SCATTER, bytes));
    }
    for (size_t bytes = 8; bytes <= (size_t)128 << 10; bytes *= 2) {
        assert_int_equal(FSDP_ALGO_INLINE, cheapest(2, 1, FSDPI_ALLREDUCE, bytes));
    }
    assert_int_equal(FSDP_ALGO_RAILS, cheapest(2, 1, FSDPI_ALLREDUCE, (size_t)64 << 20));
}

/* As measured over vader between two ranks: by messages that are asked for, and where MPI's own buffers fill the caches. */
static void what_caches_do_not_hold_is_reduced_as_it_comes(void **state)
{
    const fsdpi_world world  = {.nodes = 2, .each = 1, .staging_bytes = STAGING};
    const fsdpi_link  pulled = {.rate = 12e9, .fresh = 12e9, .alpha = 0.3e-6, .gap = 0.2e-6, .pulls = true};
    const fsdpi_link  far    = {.rate = 12e9, .fresh = 7.7e9, .alpha = 0.3e-6, .gap = 0.2e-6, .pulls = true};
    const fsdpi_link  pushed = {.rate = 12e9, .fresh = 12e9, .alpha = 0.3e-6, .gap = 0.2e-6};
    const fsdpi_costs pulls = fsdpi_costs_of(&pulled, &world), pushes = fsdpi_costs_of(&pushed, &world);
    const fsdpi_costs pulls_far = fsdpi_costs_of(&far, &world), cached = fsdpi_costs_of_cached(&pulls_far);
    const size_t      kib = 1 << 10;

    (void)state;
    check_rows(&pulls, &world);
    check_rows(&pushes, &world);
    assert_int_equal(FSDP_ALGO_INLINE, fsdpi_costs_cheapest(&cached, &world, FSDPI_ALLREDUCE, ALL, 512 * kib));
    assert_int_equal(FSDP_ALGO_INLINE, fsdpi_costs_cheapest(&pulls, &world, FSDPI_ALLREDUCE, ALL, 512 * kib));
    assert_int_equal(FSDP_ALGO_RAILS, fsdpi_costs_cheapest(&pulls, &world, FSDPI_ALLREDUCE, ALL, 1024 * kib));
    assert_int_equal(FSDP_ALGO_INLINE, fsdpi_costs_cheapest(&pulls_far, &world, FSDPI_ALLREDUCE, ALL, 128 * kib));
    assert_int_equal(FSDP_ALGO_RAILS, fsdpi_costs_cheapest(&pulls_far, &world, FSDPI_ALLREDUCE, ALL, 256 * kib));
    assert_int_equal(FSDP_ALGO_INLINE, fsdpi_costs_cheapest(&pushes, &world, FSDPI_ALLREDUCE, ALL, 128 * kib));
    assert_int_equal(FSDP_ALGO_RAILS, fsdpi_costs_cheapest(&pushes, &world, FSDPI_ALLREDUCE, ALL, 256 * kib));
    assert_int_equal(FSDP_ALGO_INLINE, fsdpi_costs_cheapest(&pulls, &world, FSDPI_ALLGATHER, ALL, 1024 * kib));
    assert_int_equal(FSDP_ALGO_RAILS, fsdpi_costs_cheapest(&pushes, &world, FSDPI_ALLGATHER, ALL, 512 * kib));
    assert_int_equal(FSDP_ALGO_INLINE, fsdpi_costs_cheapest(&pulls, &world, FSDPI_REDUCE_SCATTER, ALL, 1024 * kib));
    assert_int_equal(FSDP_ALGO_RAILS, fsdpi_costs_cheapest(&pushes, &world, FSDPI_REDUCE_SCATTER, ALL, 512 * kib));
}

static void a_ring_is_not_for_thousands_of_nodes(void **state)
{
    (void)state;
    assert_int_equal(FSDP_ALGO_RING, cheapest(4, 2, FSDPI_ALLGATHER, (size_t)16 << 20));
    assert_int_equal(FSDP_ALGO_RAILS, cheapest(4096, 8, FSDPI_ALLGATHER, (size_t)1 << 20));
    for (int m = 0; m < N_NODES; m++) {
        assert_int_not_equal(FSDP_ALGO_RING, cheapest(NODES[m], 8, FSDPI_ALLREDUCE, (size_t)1 << 20));
    }
}

/* Around the ring every node passes everything on; MPI's tree needs fewer hops, but its bytes travel several times. */
static void a_broadcast_goes_around_the_ring_where_bytes_decide(void **state)
{
    (void)state;
    assert_int_equal(FSDP_ALGO_RING, cheapest(2, 8, FSDPI_BROADCAST, (size_t)16 << 20));
    assert_int_equal(FSDP_ALGO_RING, cheapest(4, 1, FSDPI_BROADCAST, (size_t)1 << 20));
    assert_int_equal(FSDP_ALGO_RING, cheapest(64, 8, FSDPI_BROADCAST, (size_t)64 << 20));
    assert_int_equal(FSDP_ALGO_RAILS, cheapest(4096, 8, FSDPI_BROADCAST, (size_t)1 << 20));
}

/* SECONDS of a reduce of 256 MiB by the rails. */
static double reduce_on(int nodes, int each)
{
    const fsdpi_world world = {.nodes = nodes, .each = each, .staging_bytes = STAGING};
    const fsdpi_costs costs = fsdpi_costs_of(&LINKS[2], &world);

    return fsdpi_cost(&costs, &world, FSDPI_REDUCE, FSDP_ALGO_RAILS, (size_t)256 << 20);
}

static void a_reduce_costs_no_more_bytes_on_more_nodes(void **state)
{
    (void)state;
    assert_true(reduce_on(64, 8) < 1.5 * reduce_on(4, 8));
    assert_true(reduce_on(1024, 8) < 2.5 * reduce_on(4, 8));
}

/* The rounds are the only ones that need fewer messages than there are nodes. */
static void a_word_goes_in_rounds_where_nodes_are_many(void **state)
{
    (void)state;
    for (int m = 0; m < N_NODES; m++) {
        assert_int_equal(FSDP_ALGO_INLINE, cheapest(NODES[m], 8, FSDPI_ALLREDUCE, 8));
    }
}

static void pairs_are_for_few_nodes(void **state)
{
    (void)state;
    for (int l = 0; l < N_LINKS; l++) {
        for (int m = 0; m < N_NODES; m++) {
            const fsdpi_world world    = {.nodes = NODES[m], .each = 8, .staging_bytes = STAGING};
            const fsdpi_costs costs    = fsdpi_costs_of(&LINKS[l], &world);
            const bool        in_pairs = fsdpi_costs_in_pairs(&costs, &world);

            assert_true(in_pairs || NODES[m] > 4);
            assert_true(!in_pairs || NODES[m] <= FSDPI_MOST_IN_PAIRS);
            assert_true(!in_pairs || NODES[m] <= 4 ||
                        costs.alpha_m + (NODES[m] - 2) * costs.gap <= fsdpi_rounds(NODES[m]) * costs.alpha_m);
        }
    }
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

static void check_places(int nodes, int largest, size_t staging)
{
    static unsigned char memory[1 << 20];

    const size_t   slot = staging / 4 / FSDPI_LINE * FSDPI_LINE, rest = staging - 2 * slot;
    unsigned char *areas[] = {memory};
    fsdpi_mailbox  box     = {.areas = areas, .slot_bytes = slot, .rest_bytes = rest};
    const size_t   most    = fsdpi_pairs_capacity(rest, nodes, largest);

    for (int mine = 0; mine < nodes; mine++) {
        fsdpi_nodes          all      = {.count = nodes, .largest = largest, .mine = mine};
        fsdpi_exchange       exchange = {.nodes = &all, .box = &box};
        const size_t         own_room = largest == 1 ? 0 : most;
        const unsigned char *end      = memory + 2 * slot;

        fsdpi_pairs_settle(&exchange, &(fsdpi_link){.rate = 1e9});
        for (int k = 0; k < nodes; k++) { /* in the order in which they lie */
            const unsigned char *payload = fsdpi_pairs_payload(&exchange, (mine + k) % nodes);

            assert_true(payload - sizeof(fsdpi_record_head) >= end);
            end = payload + (k == 0 ? own_room : most);
        }
        assert_true(end <= memory + staging);
        assert_true(exchange.together <= most);
        assert_true(((size_t)nodes - 1) * (sizeof(fsdpi_record_head) + exchange.together) <= fsdpi_slot_capacity(&box));
    }
}

static void places_are_apart_and_within_staging_memory(void **state)
{
    (void)state;
    for (int nodes = 2; nodes <= FSDPI_MOST_IN_PAIRS; nodes++) {
        for (int largest = 1; largest <= 2; largest++) {
            check_places(nodes, largest, (size_t)1 << 20);
            check_places(nodes, largest, 32768);
            check_places(nodes, largest, 12345);
        }
    }
    assert_int_equal(0, fsdpi_pairs_capacity(100, 2, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_name_what_costs_least),
        cmocka_unit_test(longer_vectors_cost_more),
        cmocka_unit_test(what_does_not_fit_is_not_inline),
        cmocka_unit_test(two_nodes_send_with_the_agreement_as_long_as_there_is_room),
        cmocka_unit_test(what_caches_do_not_hold_is_reduced_as_it_comes),
        cmocka_unit_test(a_ring_is_not_for_thousands_of_nodes),
        cmocka_unit_test(a_broadcast_goes_around_the_ring_where_bytes_decide),
        cmocka_unit_test(a_reduce_costs_no_more_bytes_on_more_nodes),
        cmocka_unit_test(a_word_goes_in_rounds_where_nodes_are_many),
        cmocka_unit_test(pairs_are_for_few_nodes),
        cmocka_unit_test(places_are_apart_and_within_staging_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
