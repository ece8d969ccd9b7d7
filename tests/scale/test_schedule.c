/*
 * Who sends which chunk to whom between nodes, on made-up worlds: no MPI, no memory behind them. Both sides of each message
 * name it in the same order, everything goes where it is needed once, and nothing waits in a circle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/rails/chunks.h"
#include "collectives/rails/route.h"
#include "collectives/rails/schedule.h"
#include "lib/context/context.h"
#include "tests/support/unit_test.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* ---- worlds ------------------------------------------------------------------------------------------------------- */

typedef uint64_t (*placement)(int rank, int size);

static uint64_t alone(int rank, int size)
{
    (void)size;
    return (uint64_t)rank;
}

static uint64_t in_fours(int rank, int size)
{
    (void)size;
    return (uint64_t)rank / 4;
}

static uint64_t dealt_out(int rank, int size)
{
    return (uint64_t)(rank % (size / 3 + 1));
}

/* Of 1, 2, 3, ... ranks. */
static uint64_t uneven(int rank, int size)
{
    uint64_t host = 0;

    (void)size;
    for (int end = 1; end <= rank; end += (int)++host + 1) {
    }
    return host;
}

static uint64_t by_64(int rank, int size)
{
    (void)size;
    return (uint64_t)rank / 64;
}

static fsdp_context world;
static void        *maps;

static void make_world(placement host, int size, size_t rest_bytes)
{
    uint64_t *scratch = malloc(fsdpi_nodes_scratch_bytes(size));

    maps = malloc(fsdpi_nodes_bytes(size));
    assert_true(scratch != NULL && maps != NULL);
    for (int r = 0; r < size; r++) {
        scratch[r] = host(r, size);
    }
    memset(&world, 0, sizeof world);
    fsdpi_nodes_divide(size, 0, 0, scratch, maps, &world.nodes);
    fsdp_config_init(&world.config);
    world.config.message_bytes = 1 << 30;
    world.config.chunk_bytes   = 0;
    world.size                 = size;
    world.link.rate            = 1e9;

    world.lanes[FSDPI_LANE_LONG].box.rest_bytes = rest_bytes;
    free(scratch);
}

static fsdp_request operation(size_t whole_bytes, fsdp_dtype dtype, unsigned route)
{
    fsdp_request request = {
        .ctx   = &world,
        .lane  = &world.lanes[FSDPI_LANE_LONG],
        .flags = FSDPI_FLAG_SYMMETRIC,
        .call  = {.width = dtype == FSDP_F32 ? 4 : 2, .dtype = dtype, .division = FSDPI_DIVISION_EQUAL}};

    request.call.count = whole_bytes / request.call.width / (size_t)world.size;
    fsdpi_rails_size_chunks(&request, route);
    return request;
}

static fsdpi_seat seat_of(int rank)
{
    return (fsdpi_seat){rank, fsdpi_node_of(&world.nodes, rank), fsdpi_position_of(&world.nodes, rank)};
}

/* ---- all that is named -------------------------------------------------------------------------------------------- */

typedef struct list {
    fsdpi_parcel *all;
    size_t        n;
} list;

static list name_all(const fsdp_request *request, int rank, fsdpi_stream_kind kind)
{
    const fsdpi_seat seat = seat_of(rank);
    fsdpi_cursor     next = {0};
    list             l    = {0};
    fsdpi_parcel     parcel;

    while (fsdpi_rails_next(request, &seat, kind, &next, &parcel)) {
        if ((l.n & (l.n + 1)) == 0) {
            l.all = realloc(l.all, (2 * l.n + 2) * sizeof *l.all);
            assert_non_null(l.all);
        }
        l.all[l.n++] = parcel;
    }
    assert_false(fsdpi_rails_next(request, &seat, kind, &next, &parcel)); /* and it stays so */
    return l;
}

typedef struct lists {
    list *out, *in;
} lists;

static lists name_everything(const fsdp_request *request, fsdpi_stream_kind out)
{
    lists l = {.out = calloc((size_t)world.size, sizeof(list)), .in = calloc((size_t)world.size, sizeof(list))};

    assert_true(l.out != NULL && l.in != NULL);
    for (int r = 0; r < world.size; r++) {
        l.out[r] = name_all(request, r, out);
        l.in[r]  = name_all(request, r, (fsdpi_stream_kind)(out + 1));
    }
    return l;
}

static void release(lists l)
{
    for (int r = 0; r < world.size; r++) {
        free(l.out[r].all);
        free(l.in[r].all);
    }
    free(l.out);
    free(l.in);
}

/* ---- both sides agree --------------------------------------------------------------------------------------------- */

/* The next one to, or from, a peer. */
static const fsdpi_parcel *next_with(const list *l, int peer, size_t *at)
{
    while (*at < l->n && l->all[*at].peer != peer) {
        (*at)++;
    }
    return *at < l->n ? &l->all[(*at)++] : NULL;
}

/* Of an exchange, each side names blocks by whom they go to, or come from. */
static void compare_pair(const lists *l, int from, int to, bool exchanges)
{
    size_t sent = 0, received = 0;

    for (;;) {
        const fsdpi_parcel *a = next_with(&l->out[from], to, &sent), *b = next_with(&l->in[to], from, &received);

        assert_true((a == NULL) == (b == NULL));
        if (a == NULL) {
            return;
        }
        assert_int_equal(exchanges ? from : a->part, b->part);
        assert_true(exchanges || a->begin == b->begin);
        assert_int_equal(a->count, b->count);
    }
}

/* Elements that come to a node of a part, or, of partial results, to the part's owner from a node. */
static void count_elements(const fsdp_request *request, const lists *l, bool partial)
{
    const size_t nodes = (size_t)world.nodes.count;
    size_t      *come  = calloc(nodes * (size_t)world.size, sizeof *come);

    assert_non_null(come);
    for (int r = 0; r < world.size; r++) {
        for (size_t i = 0; i < l->in[r].n; i++) {
            const fsdpi_parcel *p    = &l->in[r].all[i];
            const int           node = fsdpi_node_of(&world.nodes, partial ? p->peer : r);

            assert_true(!partial || p->part == r);
            come[(size_t)p->part * nodes + (size_t)node] += p->count;
        }
    }
    for (int part = 0; part < world.size; part++) {
        for (int node = 0; node < world.nodes.count; node++) {
            assert_int_equal(fsdpi_node_of(&world.nodes, part) == node ? 0 : request->call.count,
                             come[(size_t)part * nodes + (size_t)node]);
        }
    }
    free(come);
}

static void check_route(unsigned route, fsdpi_stream_kind out, size_t whole_bytes)
{
    const fsdp_request request = operation(whole_bytes, FSDP_F32, route);
    lists              l       = name_everything(&request, out);

    for (int from = 0; from < world.size; from++) {
        for (int to = 0; to < world.size; to++) {
            compare_pair(&l, from, to, (route & FSDPI_EXCHANGES) != 0);
        }
    }
    if ((route & FSDPI_EXCHANGES) == 0) {
        count_elements(&request, &l, out == FSDPI_PARTIALS_OUT);
    }
    release(l);
}

static const placement PLACEMENTS[] = {alone, in_fours, dealt_out, uneven};
enum { N_PLACEMENTS = sizeof PLACEMENTS / sizeof PLACEMENTS[0] };

static void both_sides_name_the_same_in_the_same_order(void **state)
{
    static const int    sizes[] = {2, 3, 8, 31};
    static const size_t rests[] = {2 * MIB, 2 * KIB};

    (void)state;
    for (size_t i = 0; i < N_PLACEMENTS * 8; i++) {
        make_world(PLACEMENTS[i % N_PLACEMENTS], sizes[i / N_PLACEMENTS % 4], rests[i / N_PLACEMENTS / 4]);
        for (size_t whole = 0; world.nodes.count > 1 && whole <= 300000; whole = whole * 70 + 124) {
            check_route(FSDPI_REDUCES | FSDPI_GATHERS, FSDPI_PARTIALS_OUT, whole);
            check_route(FSDPI_REDUCES | FSDPI_GATHERS, FSDPI_PARTS_OUT, whole);
            check_route(FSDPI_GATHERS | FSDPI_AROUND, FSDPI_PARTS_OUT, whole);
            check_route(FSDPI_EXCHANGES, FSDPI_PARTS_OUT, whole);
        }
        free(maps);
    }
}

/* ---- what a root collects ------------------------------------------------------------------------------------------ */

/* Each rank's part comes to the root once, from that rank, and nothing to others. */
static void check_collected(size_t count, int root)
{
    fsdp_request request = operation(0, FSDP_F32, FSDPI_REDUCES | FSDPI_COLLECTS);
    size_t       come    = 0;

    request.call.division = FSDPI_DIVISION_ROOT;
    request.call.count    = count;
    request.call.root     = root;
    fsdpi_rails_size_chunks(&request, FSDPI_REDUCES | FSDPI_COLLECTS);

    lists l = name_everything(&request, FSDPI_PARTS_OUT);
    for (int from = 0; from < world.size; from++) {
        compare_pair(&l, from, root, false);
        assert_true(from == root || l.in[from].n == 0);
        for (size_t i = 0; i < l.out[from].n; i++) {
            assert_true(from != root && l.out[from].all[i].peer == root && l.out[from].all[i].part == from);
            come += l.out[from].all[i].count;
        }
    }
    assert_int_equal(count - fsdpi_rails_part(&request, root).count, come);
    release(l);

    l = name_everything(&request, FSDPI_PARTIALS_OUT);
    for (int from = 0; from < world.size; from++) {
        for (int to = 0; to < world.size; to++) {
            compare_pair(&l, from, to, false);
        }
    }
    release(l);
}

static void a_root_collects_every_part_once(void **state)
{
    static const int    sizes[]  = {3, 8, 31};
    static const size_t counts[] = {0, 1, 65, 4099, 300007};

    (void)state;
    for (size_t i = 0; i < N_PLACEMENTS * 3; i++) {
        make_world(PLACEMENTS[i % N_PLACEMENTS], sizes[i / N_PLACEMENTS], i % 2 == 0 ? 2 * MIB : 2 * KIB);
        for (size_t k = 0; world.nodes.count > 1 && k < sizeof counts / sizeof counts[0]; k++) {
            check_collected(counts[k], world.size / 2);
        }
        free(maps);
    }
}

/* ---- nothing waits in a circle --------------------------------------------------------------------------------------- */

/* How far each rank is in a simulation. */
typedef struct progress {
    size_t sent;  /* chunks */
    size_t freed; /* chunks that have come, with all before them, and have left their places */
    size_t busy;  /* the last step in which one came */
    bool  *come;  /* by number */
} progress;

/* The number of a chunk at its receiver, if that has a place for it now; SIZE_MAX: it has not. */
static size_t place_of(const list *in, const progress *to, int from, const fsdpi_parcel *p)
{
    const size_t end = to->freed + world.rails.streams[FSDPI_PARTIALS_IN].window;

    for (size_t at = to->freed; at < in->n && at < end; at++) {
        if (!to->come[at] && in->all[at].peer == from && in->all[at].begin == p->begin) {
            return at;
        }
    }
    return SIZE_MAX;
}

/* A rank sends its next chunk, if its receiver has a place for it and nothing else has come there in this step. */
static bool send_next(const lists *l, progress *all, int rank, size_t step)
{
    progress *me = &all[rank];

    if (me->sent == l->out[rank].n) {
        return false;
    }
    const fsdpi_parcel *p  = &l->out[rank].all[me->sent];
    progress           *to = &all[p->peer];
    const size_t        at = to->busy == step ? SIZE_MAX : place_of(&l->in[p->peer], to, rank, p);
    if (at == SIZE_MAX) {
        return false;
    }
    to->come[at] = true;
    to->busy     = step;
    me->sent++;
    return true;
}

/* Where a chunk of every node has a place, these are free again once all have come and are reduced; else one after the other. */
static void free_places(const list *in, progress *me)
{
    const size_t group = world.rails.is_ordered ? 1 : (size_t)world.nodes.count - 1;

    for (;;) {
        for (size_t i = 0; i < group; i++) {
            if (me->freed + i >= in->n || !me->come[me->freed + i]) {
                return;
            }
        }
        me->freed += group;
    }
}

/* Steps in each of which a rank sends one chunk and receives one, at most, until all have come; 0: they never do. */
static size_t steps_taken(const lists *l)
{
    const int n    = world.size;
    progress *all  = calloc((size_t)n, sizeof *all);
    size_t    left = 0, step = 0;

    assert_non_null(all);
    for (int r = 0; r < n; r++) {
        all[r].come = calloc(l->in[r].n + 1, sizeof(bool));
        assert_non_null(all[r].come);
        left += l->in[r].n;
    }
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        step++;
        for (int k = 0; k < n; k++) {
            if (send_next(l, all, (k + (int)step) % n, step)) {
                moved = true;
                left--;
            }
        }
        for (int r = 0; r < n; r++) {
            free_places(&l->in[r], &all[r]);
        }
    }
    for (int r = 0; r < n; r++) {
        free(all[r].come);
    }
    free(all);
    return left == 0 ? step : 0;
}

static void in_the_order_of_nodes_nothing_waits_in_a_circle(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_PLACEMENTS; i++) {
        make_world(PLACEMENTS[i], 40, 2 * KIB);

        const fsdp_request request = operation(200000, FSDP_BF16, FSDPI_REDUCES);
        assert_true(world.rails.is_ordered);
        assert_true(world.rails.streams[FSDPI_PARTIALS_IN].window < 39);
        lists l = name_everything(&request, FSDPI_PARTIALS_OUT);
        assert_true(steps_taken(&l) > 0);
        release(l);
        free(maps);
    }
}

/* Some chunks to one node before the next one's: never more than that has places for. */
static void check_turns(int nodes, bool pulls, size_t whole_bytes)
{
    make_world(alone, nodes, 2 * MIB);
    world.link.rate  = 10e9;
    world.link.pulls = pulls;

    const fsdp_request request = operation(whole_bytes, FSDP_F32, FSDPI_REDUCES);
    lists              l       = name_everything(&request, FSDPI_PARTIALS_OUT);

    assert_true(world.rails.has_turns && (nodes > 8 || !world.rails.is_ordered));
    if (steps_taken(&l) == 0) {
        fail_msg("%d nodes wait for each other in a reduce_scatter of %zu bytes", nodes, whole_bytes);
    }
    release(l);
    free(maps);
}

static void in_turns_nothing_waits_in_a_circle(void **state)
{
    (void)state;
    for (int nodes = 3; nodes <= 40; nodes += nodes < 9 ? 1 : 31) {
        for (size_t whole = MIB; whole <= (size_t)64 * MIB; whole *= 4) {
            check_turns(nodes, false, whole);
            check_turns(nodes, true, whole);
        }
    }
}

/* The chunks of the last node come behind those of all others, but only once. */
static void a_series_of_chunks_takes_one_round_more(void **state)
{
    enum { NODES = 48, CHUNKS = 8 };

    (void)state;
    make_world(alone, NODES, 256 * KIB);
    const fsdp_request request = operation((size_t)NODES * CHUNKS * 32 * KIB, FSDP_F32, FSDPI_REDUCES);
    assert_true(world.rails.is_ordered);
    lists        l       = name_everything(&request, FSDPI_PARTIALS_OUT);
    const size_t chunks  = fsdpi_rails_chunks(&request, request.call.count);
    const size_t at_best = chunks * (NODES - 1), steps = steps_taken(&l);
    (void)printf("%d nodes, %zu chunks from each: %zu steps, %zu at best\n", NODES, chunks, steps, at_best);
    assert_in_range(steps, at_best, at_best + 2 * NODES);
    release(l);
    free(maps);
}

/* ---- many nodes ---------------------------------------------------------------------------------------------------- */

/* BYTES of the shortest message but the last one to each, and how many there are to each. */
static size_t shortest(const fsdp_request *request, const list *l, size_t *each)
{
    const size_t chunks = fsdpi_rails_chunks(request, request->call.count);
    size_t       least  = SIZE_MAX;

    assert_int_equal(l->n, chunks * ((size_t)world.nodes.count - 1));
    for (size_t i = 0; i < l->n; i++) {
        const bool is_last = l->all[i].begin + l->all[i].count == (size_t)(l->all[i].part + 1) * request->call.count;
        if ((!is_last || chunks == 1) && l->all[i].count * request->call.width < least) {
            least = l->all[i].count * request->call.width;
        }
    }
    *each = chunks;
    return least;
}

static void messages_between_many_nodes_are_worth_it(void **state)
{
    size_t each;

    (void)state;
    make_world(alone, 1000, 2 * MIB);
    fsdp_request request = operation((size_t)16 * MIB, FSDP_F32, FSDPI_REDUCES);
    list         l       = name_all(&request, 999, FSDPI_PARTIALS_OUT);
    assert_in_range(shortest(&request, &l, &each), 16700, 16800);
    assert_int_equal(1, each);
    free(l.all);
    request = operation((size_t)256 * MIB, FSDP_F32, FSDPI_REDUCES);
    l       = name_all(&request, 0, FSDPI_PARTIALS_OUT);
    assert_true(shortest(&request, &l, &each) >= (size_t)32 * KIB);
    assert_in_range(each, 8, 9);
    free(l.all);
    free(maps);
}

static size_t bytes_of_places(const fsdp_request *request)
{
    return (world.rails.places + 5) * world.rails.chunk * request->call.width;
}

/* The same memory, and messages as long, from a hundred nodes to sixteen thousand, of a million ranks. */
static void staging_and_messages_do_not_depend_on_how_many_nodes_there_are(void **state)
{
    (void)state;
    (void)printf("  ranks,  nodes: BYTES of a chunk | places | BYTES of them | messages of rank 0\n");
    for (int nodes = 128; nodes <= 16384; nodes *= 8) {
        make_world(by_64, 64 * nodes, 2 * MIB);
        const fsdp_request request = operation((size_t)world.size * 64 * KIB, FSDP_BF16, FSDPI_REDUCES | FSDPI_GATHERS);
        list               out     = name_all(&request, 0, FSDPI_PARTIALS_OUT);
        list               in      = name_all(&request, 64 * nodes - 1, FSDPI_PARTIALS_IN);

        (void)printf("%7d, %6d: %16zu | %6zu | %13zu | %zu\n", world.size, nodes, world.rails.chunk * 2,
                     world.rails.places, bytes_of_places(&request), out.n);
        assert_true(world.rails.is_ordered);
        assert_int_equal(32 * KIB, world.rails.chunk * 2);
        assert_true(bytes_of_places(&request) <= world.lanes[FSDPI_LANE_LONG].box.rest_bytes);
        assert_int_equal(2 * (nodes - 1), out.n);
        assert_int_equal(2 * (nodes - 1), in.n);
        free(out.all);
        free(in.all);
        free(maps);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_name_the_same_in_the_same_order),
        cmocka_unit_test(a_root_collects_every_part_once),
        cmocka_unit_test(in_the_order_of_nodes_nothing_waits_in_a_circle),
        cmocka_unit_test(in_turns_nothing_waits_in_a_circle),
        cmocka_unit_test(a_series_of_chunks_takes_one_round_more),
        cmocka_unit_test(messages_between_many_nodes_are_worth_it),
        cmocka_unit_test(staging_and_messages_do_not_depend_on_how_many_nodes_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
