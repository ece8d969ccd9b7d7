/* How leaders hear of all nodes: every leader of up to 16384 made-up nodes, with copies in the place of messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sync/records.h"
#include "tests/support/unit_test.h"

static const int NODES[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 127, 128, 129, 1000, 1024, 4096, 10007, 16384};
enum { N_NODES = sizeof NODES / sizeof NODES[0], FEW = 15 };

enum { GUARD = 0x5a };

/* ---- leaders ------------------------------------------------------------------------------------------------------- */

/* Messages of a round are copied out before any comes in, as all leaders send at once. */
typedef struct leaders {
    int            n;
    size_t         room; /* BYTES of each one's area */
    unsigned char *areas, *messages;
    size_t        *lengths; /* of the messages */
    fsdpi_records *records;
} leaders;

static const fsdpi_opinion GOOD = {.call = 11, .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_OFFERED | FSDPI_FLAG_PLACES};

/* BYTES: of uneven length, and none for some. */
static size_t payload_of(int node)
{
    return (size_t)(node % 5) * 3;
}

static void fill(unsigned char *payload, int node)
{
    for (size_t i = 0; i < payload_of(node); i++) {
        payload[i] = (unsigned char)(node * 31 + (int)i);
    }
}

/* All say `GOOD` but one, which says `other`. Whoever carries has payload; without payload there is room for two heads. */
static void open_leaders(leaders *l, int n, bool with_payload, int odd, fsdpi_opinion other)
{
    *l          = (leaders){.n = n, .room = (with_payload ? (size_t)n : 2) * (sizeof(fsdpi_record_head) + 16)};
    l->areas    = malloc((size_t)n * (l->room + 1));
    l->messages = malloc((size_t)n * l->room);
    l->lengths  = calloc((size_t)n, sizeof *l->lengths);
    l->records  = calloc((size_t)n, sizeof *l->records);
    assert_true(l->areas != NULL && l->messages != NULL && l->lengths != NULL && l->records != NULL);
    for (int m = 0; m < n; m++) {
        unsigned char *area = l->areas + (size_t)m * l->room;

        fsdpi_record_head *head = fsdpi_records_begin(&l->records[m], area, n, m);
        *head                   = (fsdpi_record_head){.all = m == odd ? other : GOOD};
        if (!with_payload) {
            head->all.flags &= ~(uint32_t)FSDPI_FLAG_OFFERED;
        } else if (fsdpi_carries(&head->all)) {
            head->bytes = payload_of(m);
            fill((unsigned char *)(head + 1), m);
        }
    }
}

static void close_leaders(leaders *l)
{
    free(l->areas);
    free(l->messages);
    free(l->lengths);
    free(l->records);
}

/* BYTES of the longest message. */
static size_t run_round(leaders *l)
{
    size_t longest = 0;

    for (int m = 0; m < l->n; m++) {
        l->lengths[m] = fsdpi_records_leaving(&l->records[m]);
        memcpy(l->messages + (size_t)m * l->room, l->records[m].area, l->lengths[m]);
        longest = l->lengths[m] > longest ? l->lengths[m] : longest;
    }
    for (int m = 0; m < l->n; m++) {
        fsdpi_records    *mine  = &l->records[m];
        const fsdpi_round round = fsdpi_round_of(l->n, m, mine->have);

        assert_int_equal(m, fsdpi_round_of(l->n, round.from, mine->have).to);
        assert_true(mine->end + l->lengths[round.from] <= l->room);
        memcpy(mine->area + mine->end, l->messages + (size_t)round.from * l->room, l->lengths[round.from]);
        fsdpi_records_arrived(mine);
    }
    return longest;
}

static const fsdpi_record_head *first_of(const leaders *l, int m)
{
    return (const fsdpi_record_head *)(const void *)l->records[m].area;
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void rounds_are_the_logarithm_of_the_nodes(void **state)
{
    (void)state;
    for (int n = 1, expected = 0, power = 1; n <= 16384; n++) {
        if (n > power) {
            power *= 2;
            expected++;
        }
        assert_int_equal(expected, fsdpi_rounds(n));
    }
    assert_int_equal(30, fsdpi_rounds(1 << 30));
    assert_int_equal(31, fsdpi_rounds((1 << 30) + 1));
}

static void without_payload_messages_are_of_constant_size(void **state)
{
    (void)state;
    for (int i = 0; i < N_NODES; i++) {
        const int n = NODES[i];
        leaders   l;
        int       rounds = 0;

        open_leaders(&l, n, false, -1, GOOD);
        for (; l.records[0].have < n; rounds++) {
            assert_int_equal(sizeof(fsdpi_record_head), run_round(&l));
        }
        assert_int_equal(fsdpi_rounds(n), rounds);
        for (int m = 0; m < n; m++) {
            assert_int_equal(n, l.records[m].have);
            assert_true(l.records[m].seen <= 1);
            assert_int_equal(FSDPI_FLAG_SAME | FSDPI_FLAG_PLACES, first_of(&l, m)->all.flags);
        }
        (void)printf("%5d nodes: an agreement is %2d messages of %zu bytes per leader\n", n, rounds,
                     sizeof(fsdpi_record_head));
        close_leaders(&l);
    }
}

/* What can be odd about one node's ranks; the last one has arguments that are bad. */
static const fsdpi_opinion ODDITIES[] = {
    {.call = 10, .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_OFFERED | FSDPI_FLAG_PLACES},
    {.call = 12, .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_OFFERED | FSDPI_FLAG_PLACES},
    {.call = 10, .flags = FSDPI_FLAG_SAME},
    {.call = 11, .flags = FSDPI_FLAG_OFFERED},
    {.call = 11, .flags = FSDPI_FLAG_SAME},
    {.call = 11, .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_OFFERED, .status = FSDP_ERR_ARG},
};
enum { N_ODDITIES = sizeof ODDITIES / sizeof ODDITIES[0] };

/* Every leader knows in the end, whichever messages carry payload. */
static void check_oddity(int n, bool with_payload, int odd, fsdpi_opinion other)
{
    fsdpi_opinion all = GOOD;
    leaders       l;

    all.flags &= with_payload ? ~0U : ~(uint32_t)FSDPI_FLAG_OFFERED;
    fsdpi_join(&all, &other);
    open_leaders(&l, n, with_payload, odd, other);
    while (l.records[0].have < n) {
        (void)run_round(&l);
    }
    for (int m = 0; m < n; m++) {
        const fsdpi_opinion found = first_of(&l, m)->all;

        if (found.flags != all.flags || found.status != all.status) {
            fail_msg("%d nodes, of which node %d is odd: node %d finds flags %x and status %d", n, odd, m, found.flags,
                     (int)found.status);
        }
    }
    close_leaders(&l);
}

static void one_odd_node_is_found_by_every_leader(void **state)
{
    (void)state;
    for (int i = 1; i < FEW; i++) {
        for (int o = 0; o < N_ODDITIES; o++) {
            for (int odd = 0; odd < NODES[i]; odd += 1 + NODES[i] / 6) {
                check_oddity(NODES[i], true, odd, ODDITIES[o]);
                check_oddity(NODES[i], false, odd, ODDITIES[o]);
            }
        }
    }
    check_oddity(16384, false, 16383, ODDITIES[0]);
    check_oddity(10007, false, 5000, ODDITIES[N_ODDITIES - 1]);
}

static void payload_comes_whole_to_every_leader(void **state)
{
    unsigned char expected[16];

    (void)state;
    for (int i = 0; i < FEW; i++) {
        const int n = NODES[i];
        leaders   l;

        open_leaders(&l, n, true, -1, GOOD);
        while (l.records[0].have < n) {
            (void)run_round(&l);
        }
        for (int m = 0; m < n; m++) {
            const fsdpi_record_head *record = first_of(&l, m);

            assert_true(fsdpi_carries(&record->all));
            for (int place = 0; place < n; place++) {
                const int node = (m + place) % n;

                fill(expected, node);
                assert_int_equal(payload_of(node), record->bytes);
                assert_memory_equal(expected, record + 1, record->bytes);
                record = fsdpi_record_behind(record);
            }
        }
        close_leaders(&l);
    }
}

/* As the leader of node `m` sends the records of `n` nodes. Returns where it ends. */
static unsigned char *make_message(unsigned char *at, int nodes, int m, int n)
{
    for (int i = 0; i < n; i++) {
        const int          node = (m + i) % nodes;
        fsdpi_record_head *head = (fsdpi_record_head *)(void *)at;

        *head = (fsdpi_record_head){.all = GOOD, .bytes = payload_of(node)};
        fill((unsigned char *)(head + 1), node);
        at += fsdpi_record_bytes(head);
    }
    return at;
}

/* Of its own messages a leader looks at each record once; and so do those who take what has come. */
static void each_record_is_looked_at_once(void **state)
{
    enum { MINE = 5 };

    (void)state;
    for (int i = 0; i < N_NODES; i++) {
        const int      n    = NODES[i];
        const size_t   room = (size_t)n * (sizeof(fsdpi_record_head) + 16);
        unsigned char *area = malloc(room + 1), *message = malloc(room);
        fsdpi_records  records;
        int            visits = 0, rounds = 0;

        assert_true(area != NULL && message != NULL);
        area[room] = GUARD;
        (void)fsdpi_records_begin(&records, area, n, MINE % n);
        (void)make_message(area, n, MINE % n, 1);
        for (; records.have < n; rounds++) {
            const fsdpi_round round = fsdpi_round_of(n, MINE % n, records.have);
            const size_t      bytes = (size_t)(make_message(message, n, MINE % n, round.records) - message);

            assert_int_equal(bytes, fsdpi_records_leaving(&records));
            assert_int_equal(records.have, records.seen);
            assert_true(make_message(area + records.end, n, round.from, round.records) <= area + room);
            fsdpi_records_arrived(&records);
        }
        const fsdpi_record_head *record = (const fsdpi_record_head *)(const void *)area;
        for (; (const unsigned char *)record < area + room && visits < n; record = fsdpi_record_behind(record)) {
            visits++;
        }
        assert_int_equal(fsdpi_rounds(n), rounds);
        assert_int_equal(n, visits);
        assert_true(records.seen <= n);
        assert_int_equal(GUARD, area[room]);
        free(area);
        free(message);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_are_the_logarithm_of_the_nodes),
        cmocka_unit_test(without_payload_messages_are_of_constant_size),
        cmocka_unit_test(one_odd_node_is_found_by_every_leader),
        cmocka_unit_test(payload_comes_whole_to_every_leader),
        cmocka_unit_test(each_record_is_looked_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
