/*
 * Large nodes that are only made up: whom each rank hears, the cache lines that it reads and writes for that, and whether
 * ranks that come in any order meet in a tree as they do without one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/node/nodes.h"
#include "lib/node/tree.h"
#include "lib/sync/mailbox.h"
#include "tests/support/unit_test.h"

/* ---- made-up nodes --------------------------------------------------------------------------------------------------- */

/* Ranks on caches of 8 cores and two NUMA nodes, bound to cores one after the other, or to the NUMA nodes in turns. */
typedef enum binding { UNBOUND, BY_CORE, IN_TURNS, TO_NUMA } binding;

typedef struct node {
    int     size;
    binding bound;
    int     group; /* FSDP_NODE_GROUP */
    int     most;  /* lines that a rank reads for a synchronisation, at most */
} node;

/* Without a tree each reads those of all others. */
static const node NODES[] = {
    {1, UNBOUND, 0, 0},     {5, UNBOUND, 0, 4},    {16, BY_CORE, 0, 15},  {17, UNBOUND, 0, 6},   {17, BY_CORE, 0, 9},
    {64, UNBOUND, 0, 14},   {64, BY_CORE, 0, 11},  {64, IN_TURNS, 0, 11}, {128, UNBOUND, 0, 20}, {128, BY_CORE, 0, 15},
    {128, IN_TURNS, 0, 15}, {192, UNBOUND, 0, 25}, {192, BY_CORE, 0, 19}, {192, TO_NUMA, 0, 18}, {1024, UNBOUND, 0, 29},
    {5, BY_CORE, 2, 3},     {8, UNBOUND, 2, 3},    {5, UNBOUND, 3, 3},    {8, UNBOUND, 3, 4},    {64, BY_CORE, 1, 63},
};
enum { N_NODES = sizeof NODES / sizeof NODES[0] };

static fsdpi_place place_of(const node *n, int position)
{
    const int core = n->bound == IN_TURNS ? position % 2 * (n->size / 2) + position / 2 : position;
    const int numa = 2 * core / n->size;

    switch (n->bound) {
    case UNBOUND:
        return (fsdpi_place){-1, -1};
    case TO_NUMA:
        return (fsdpi_place){-1, numa};
    default:
        return (fsdpi_place){core / 8 * 8, numa};
    }
}

static const char *name_of(binding b)
{
    static const char *const NAMES[] = {"not bound", "by core", "in turns", "to NUMA nodes"};

    return NAMES[b];
}

static void grow(const node *n, uint16_t *above)
{
    fsdpi_place places[FSDPI_MOST_ON_NODE];

    for (int p = 0; p < n->size; p++) {
        places[p] = place_of(n, p);
    }
    fsdpi_tree_grow(places, n->size, n->group, above);
}

/* ---- whom a rank hears ------------------------------------------------------------------------------------------------ */

/* Of all ranks of a node, for one synchronisation. */
typedef struct counts {
    int most_read, leaf_read, most_written, most_readers, steps;
} counts;

static int most(int a, int b)
{
    return a > b ? a : b;
}

static int depth_of(const uint16_t *above, int position)
{
    int depth = 0;

    for (; position > 0; position = above[position]) {
        assert_true(above[position] < position); /* so that it ends */
        depth++;
    }
    return depth;
}

/* Reads: a letter or a sum of each below, and the verdict from above. Writes: its letter; a sum, and the verdict, for others. */
static counts count_tree(const node *n)
{
    uint16_t     above[FSDPI_MOST_ON_NODE], below[FSDPI_MOST_ON_NODE];
    fsdpi_branch branch = {.below = below};
    counts       c      = {.leaf_read = n->size};

    grow(n, above);
    for (int p = 0; p < n->size; p++) {
        fsdpi_tree_cut(above, n->size, p, &branch);
        const int read = branch.n + (branch.above >= 0);
        c.most_read    = most(c.most_read, read);
        c.leaf_read    = read < c.leaf_read ? read : c.leaf_read;
        c.most_written = most(c.most_written, branch.n > 0 ? 3 : 1);
        c.most_readers = most(c.most_readers, branch.n);
        c.steps        = most(c.steps, 2 * depth_of(above, p));
    }
    return c;
}

static counts count(const node *n)
{
    const int others = n->size - 1;

    return fsdpi_tree_is_needed(n->size, n->group) ? count_tree(n) : (counts){others, others, 1, others, others > 0};
}

static void a_rank_reads_few_lines_however_many_ranks_there_are(void **state)
{
    (void)state;
    (void)printf("ranks, bound, group: lines read by most and least | written | readers of a line | steps\n");
    for (size_t i = 0; i < N_NODES; i++) {
        const node  *n = &NODES[i];
        const counts c = count(n);

        (void)printf("%5d, %-13s, %d: %3d %3d | %d | %3d | %d\n", n->size, name_of(n->bound), n->group, c.most_read,
                     c.leaf_read, c.most_written, c.most_readers, c.steps);
        assert_int_equal(n->most, c.most_read);
        assert_in_range(c.steps, 0, 8);
    }
}

static void up_to_16_ranks_are_all_heard_directly(void **state)
{
    (void)state;
    assert_false(fsdpi_tree_is_needed(16, 0));
    assert_true(fsdpi_tree_is_needed(17, 0));
    assert_false(fsdpi_tree_is_needed(1024, 1));
    assert_false(fsdpi_tree_is_needed(3, 3));
    assert_true(fsdpi_tree_is_needed(3, 2));
}

/* On 64 cores in turns: the heads of all caches are the lowest positions there. */
static void ranks_that_share_a_cache_are_a_group(void **state)
{
    static const node in_turns = {64, IN_TURNS, 0, 0};
    uint16_t          above[FSDPI_MOST_ON_NODE];

    (void)state;
    grow(&in_turns, above);
    assert_int_equal(0, above[2]); /* cores 1, 7 and 8 of the first NUMA node */
    assert_int_equal(0, above[14]);
    assert_int_equal(0, above[16]); /* a head, as the next one is not */
    assert_int_equal(16, above[18]);
    assert_int_equal(0, above[1]); /* the head of the second NUMA node, and some of its own */
    assert_int_equal(1, above[3]);
    assert_int_equal(1, above[17]);
    assert_int_equal(17, above[19]);
}

/* ---- meeting in it ---------------------------------------------------------------------------------------------------- */

enum { OPERATIONS = 7, LEADER_STEPS = 2 };
enum { POST, MEET, ASKED, HALFWAY, LEFT, DONE };

typedef struct rank {
    fsdpi_mailbox box;
    fsdpi_nodes   nodes;
    int           step;
    uint64_t      number;
    int           delay;
} rank;

/* A node in one process, whose ranks take their steps in any order. */
static struct {
    const node    *n;
    int            nodes; /* 2: the leader has to hear of another one */
    fsdpi_core     core;
    fsdpi_desk     desks[FSDPI_MOST_ON_NODE];
    fsdpi_letter   letters[FSDPI_MOST_ON_NODE][2];
    fsdpi_desk    *desk_of[FSDPI_MOST_ON_NODE];
    unsigned char *area_of[FSDPI_MOST_ON_NODE];
    uint16_t       below[FSDPI_MOST_ON_NODE][FSDPI_MOST_ON_NODE];
    rank           ranks[FSDPI_MOST_ON_NODE];
} job;

static void open_job(const node *n, int nodes)
{
    memset(&job, 0, sizeof job);
    job.n                      = n;
    job.nodes                  = nodes;
    job.core.config.node_group = n->group;
    for (int p = 0; p < n->size; p++) {
        rank *r            = &job.ranks[p];
        job.desk_of[p]     = &job.desks[p];
        job.area_of[p]     = (unsigned char *)job.letters[p];
        job.desks[p].place = place_of(n, p);
        r->nodes           = (fsdpi_nodes){
                      .count = nodes, .size = n->size, .position = p, .roster = {.ranks = n->size, .even = n->size}};
        r->box            = (fsdpi_mailbox){.core       = &job.core,
                                            .nodes      = &r->nodes,
                                            .looks      = 1,
                                            .desks      = job.desk_of,
                                            .areas      = job.area_of,
                                            .direct     = n->size,
                                            .slot_bytes = sizeof(fsdpi_letter)};
        r->box.tree.below = job.below[p];
        r->box.position   = p;
        r->box.bell       = &job.desks[p].bell;
    }
    for (int p = 0; p < n->size; p++) {
        fsdpi_mailbox_grow(&job.ranks[p].box, &job.ranks[p].box);
        assert_int_equal(fsdpi_tree_is_needed(n->size, n->group), fsdpi_mailbox_has_tree(&job.ranks[p].box));
    }
}

/* What a rank says in an operation: one differs in some, one fails in others, and some places are not the same. */
static fsdpi_opinion says(int p, uint64_t number)
{
    const int last = job.n->size - 1;

    return (fsdpi_opinion){.call  = number + (number % 4 == 1 && p == last ? 1 : 0),
                           .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_ONE_PLACE | FSDPI_FLAG_OFFERED |
                                    (number % 3 == 1 && p == last / 2 ? 0 : FSDPI_FLAG_PLACES),
                           .status = number % 5 == 2 && p == last / 3 ? FSDP_ERR_ARG : FSDP_OK};
}

static uint64_t out_of(int p, uint64_t number)
{
    return number % 2 == 1 && p == job.n->size - 1 ? 64 : 128;
}

static void post(rank *r, int p)
{
    fsdpi_letter       *letter = fsdpi_letter_of(&r->box, p, ++r->number);
    const fsdpi_opinion mine   = says(p, r->number);

    fsdpi_write_opinion(letter, &mine);
    letter->at.out = out_of(p, r->number);
    fsdpi_mailbox_post(&r->box, letter, r->number);
}

static void assert_all_are_here(const rank *r)
{
    for (int p = 0; p < job.n->size; p++) {
        const fsdpi_letter *letter = fsdpi_letter_of(&r->box, p, r->number);

        assert_int_equal(r->number, letter->number);
        assert_int_equal(out_of(p, r->number), letter->at.out);
    }
}

static void assert_verdict(const rank *r)
{
    fsdpi_opinion all       = says(0, r->number);
    bool          one_place = true;

    for (int p = 1; p < job.n->size; p++) {
        const fsdpi_opinion one = says(p, r->number);
        fsdpi_join(&all, &one);
        one_place = one_place && out_of(p, r->number) == out_of(0, r->number);
    }
    all.flags &= one_place ? ~0U : ~(unsigned)FSDPI_FLAG_ONE_PLACE;
    if (fsdpi_mailbox_has_tree(&r->box)) {
        const fsdpi_opinion found = fsdpi_mailbox_verdict(&r->box, r->number);

        assert_int_equal(all.flags, found.flags);
        assert_int_equal(all.status, found.status);
    }
}

/* The letters of this node; and across nodes, on the leader, those of the others some steps later. */
static void meet(rank *r, int p)
{
    if (job.nodes == 1) {
        r->step = fsdpi_mailbox_arrived(&r->box, r->number) ? HALFWAY : MEET;
    } else if (fsdpi_mailbox_heard(&r->box, r->number)) {
        r->step  = ASKED;
        r->delay = LEADER_STEPS;
        if (p == 0) {
            assert_all_are_here(r);
        }
    }
}

static void ask(rank *r, int p)
{
    if (p == 0 && r->delay-- > 0) {
        return;
    }
    if (p == 0) {
        const fsdpi_opinion all =
            fsdpi_mailbox_has_tree(&r->box) ? fsdpi_mailbox_verdict(&r->box, r->number) : (fsdpi_opinion){0};
        fsdpi_mailbox_tell(&r->box, r->number, &all);
        r->step = HALFWAY;
    } else if (fsdpi_mailbox_told(&r->box, r->number)) {
        r->step = HALFWAY;
    }
}

static void begin_milestone(rank *r, uint64_t stage)
{
    fsdpi_milestone_set(&r->box, FSDPI_MILESTONE(r->number, stage));
}

/* Whether all have reached it, as the node says and as it is. */
static bool end_milestone(rank *r, uint64_t stage)
{
    const uint64_t milestone = FSDPI_MILESTONE(r->number, stage);

    if (!fsdpi_milestone_reached(&r->box, milestone)) {
        return false;
    }
    for (int p = 0; p < job.n->size; p++) {
        assert_true(job.desks[p].milestone >= milestone);
    }
    return true;
}

static void advance(int p)
{
    rank     *r      = &job.ranks[p];
    const int before = r->step;

    switch (r->step) {
    case POST:
        post(r, p);
        r->step = MEET;
        break;
    case MEET:
        meet(r, p);
        break;
    case ASKED:
        ask(r, p);
        break;
    case HALFWAY:
        r->step = end_milestone(r, FSDPI_HALFWAY) ? LEFT : HALFWAY;
        break;
    case LEFT:
        if (end_milestone(r, FSDPI_LEFT)) {
            r->step = r->number == OPERATIONS ? DONE : POST;
        }
        break;
    default:
        break;
    }
    if (r->step == HALFWAY && before != HALFWAY) {
        assert_all_are_here(r);
        assert_verdict(r);
        begin_milestone(r, FSDPI_HALFWAY);
    } else if (r->step == LEFT && before != LEFT) {
        assert_all_are_here(r);
        begin_milestone(r, FSDPI_LEFT);
    }
}

/* Any of them next, some far more often than others. */
static int next_rank(uint64_t *random)
{
    *random            = *random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t any = *random >> 33;

    return (int)((any % 3 == 0 ? any / 3 : any / 3 % 5) % (uint64_t)job.n->size);
}

static bool are_done(void)
{
    for (int p = 0; p < job.n->size; p++) {
        if (job.ranks[p].step != DONE) {
            return false;
        }
    }
    return true;
}

static void meet_in_any_order(const node *n, int nodes, uint64_t seed)
{
    open_job(n, nodes);
    for (int rounds = 0; !are_done(); rounds++) {
        assert_true(rounds < 100 * OPERATIONS * 16);
        for (int i = 0; i < 3 * n->size; i++) {
            advance(next_rank(&seed));
        }
    }
}

static void ranks_meet_in_whichever_order_they_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_NODES; i++) {
        for (int nodes = 1; nodes <= 2; nodes++) {
            for (uint64_t seed = 1; seed <= (NODES[i].size > 64 ? 1 : 3); seed++) {
                meet_in_any_order(&NODES[i], nodes, seed);
            }
        }
    }
}

/* ---- who is missing --------------------------------------------------------------------------------------------------- */

/* All but some take as many steps as lead anywhere. */
static void advance_all_but(int lowest, int n)
{
    for (int i = 0; i < 20 * job.n->size; i++) {
        const int p = i % job.n->size;
        if (p < lowest || p >= lowest + n) {
            advance(p);
        }
    }
}

/* From a rank on, by whom each waits for, the rank that waits for nobody. */
static int end_of_waiting(int p)
{
    for (int steps = 0; steps < job.n->size; steps++) {
        fsdpi_rank_list awaited = {.n = 0};

        fsdpi_mailbox_awaited(&job.ranks[p].box, &awaited);
        if (awaited.n == 0) {
            return p;
        }
        p = awaited.ranks[0];
    }
    return -1; /* in a circle */
}

static void all_wait_for_those_that_do_not_come(void **state)
{
    static const node all = {64, BY_CORE, 0, 0};

    (void)state;
    open_job(&all, 1);
    advance_all_but(31, 2);
    for (int p = 0; p < 64; p++) {
        assert_in_range(end_of_waiting(p), 31, 32);
    }
}

static void all_wait_for_who_does_not_pass_on(void **state)
{
    static const node all = {64, BY_CORE, 0, 0};

    (void)state;
    open_job(&all, 1);
    advance(32); /* posts its letter, and stays away then: the head of a NUMA node */
    advance_all_but(32, 1);
    for (int p = 0; p < 64; p++) {
        assert_int_equal(32, end_of_waiting(p));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_reads_few_lines_however_many_ranks_there_are),
        cmocka_unit_test(up_to_16_ranks_are_all_heard_directly),
        cmocka_unit_test(ranks_that_share_a_cache_are_a_group),
        cmocka_unit_test(ranks_meet_in_whichever_order_they_come),
        cmocka_unit_test(all_wait_for_those_that_do_not_come),
        cmocka_unit_test(all_wait_for_who_does_not_pass_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
