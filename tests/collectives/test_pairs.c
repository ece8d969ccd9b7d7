/**
 * @file
 * Few nodes, each a rank, that exchange agreements in pairs: what is sent is counted, and where calls differ nothing is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "fsdp/algorithms.h"
#include "lib/base/clock.h"
#include "lib/context/context.h"
#include "lib/sync/pairs.h"
#include "tests/collectives/collective_test.h"

enum { HEAD = sizeof(fsdpi_record_head), SHORT = 100, LONG = 8192, MOST_RANKS = 16 };

static struct {
    fsdp_context *ctx;
    int           rank, size;
    float        *in, *out; /* twice LONG for each rank */
    bool          forgets;  /* what has just been read, so that each call is as the first one */
    bool          puts_off; /* to send the long parts of an allgather until all have agreed */
} world;

/* ---- what is sent --------------------------------------------------------------------------------------------------- */

static struct {
    size_t messages, bytes;
    size_t expected; /* BYTES at most of what is received from before the first of them on */
} sent;

int __real_MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);

int __wrap_MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    sent.messages++;
    sent.bytes += (size_t)count;
    return __real_MPI_Isend(data, count, type, to, tag, comm, request);
}

int __real_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
int __wrap_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);

int __wrap_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    sent.expected += sent.messages == 0 ? (size_t)count : 0;
    return __real_MPI_Irecv(data, count, type, from, tag, comm, request);
}

static void fill_input(void)
{
    if (world.forgets) {
        memset(world.ctx->rails.reads, 0, sizeof world.ctx->rails.reads);
    }
    for (size_t i = 0; i < (size_t)world.size * LONG; i++) {
        world.in[i] = (float)(world.rank + 1) * (float)(i % 17 + 1);
    }
}

static void begin(void)
{
    fill_input();
    sent.messages = sent.bytes = sent.expected = 0;
}

/* The messages that data of so many BYTES takes, apart from its head. */
static size_t pieces_of(size_t bytes)
{
    const fsdpi_cut *cut = &world.ctx->lanes[FSDPI_LANE_SHORT].messages.cut;

    return bytes <= cut->until ? (bytes + cut->piece - 1) / cut->piece : 1;
}

/* Whether two nodes that send each other such portions do so without heads. */
static bool are_swapped(size_t portion)
{
    const fsdpi_exchange *exchange = &world.ctx->lanes[FSDPI_LANE_SHORT].exchange;

    return world.size == 2 && portion > exchange->together && portion <= exchange->swap_until &&
           (pieces_of(portion) == 1 || (pieces_of(portion) <= FSDPI_MOST_IN_PAIRS && portion <= exchange->led_until));
}

/* BYTES of a portion that has messages of its own; the first of it may be behind its head. */
static size_t apart_of(size_t portion)
{
    const fsdpi_exchange *exchange = &world.ctx->lanes[FSDPI_LANE_SHORT].exchange;

    return portion <= exchange->together ? 0 : portion <= exchange->led_until ? portion - exchange->together : portion;
}

/* BYTES of it that are received from before anything is sent on. */
static size_t expected_of(size_t portion)
{
    return world.size > 2 ? 0 : are_swapped(portion) ? portion : apart_of(portion);
}

/* The messages to each other node with `portion` BYTES: behind a head, and without one if that can be. */
static size_t messages_behind_head(size_t portion)
{
    const size_t apart = apart_of(portion);

    return apart > 0 ? 1 + pieces_of(apart) : 1;
}

static size_t messages_with(size_t portion)
{
    return are_swapped(portion) ? pieces_of(portion) : messages_behind_head(portion);
}

/* BYTES of what a node is sent in front of a portion: the tag of a short one says enough. */
static size_t head_of(size_t portion)
{
    const bool is_short = portion <= world.ctx->lanes[FSDPI_LANE_SHORT].exchange.together;

    return is_short || are_swapped(portion) ? 0 : HEAD;
}

static void assert_sent_in(size_t messages, size_t bytes)
{
    const size_t others = (size_t)world.size - 1;

    assert_string_equal("inline", fsdp_last_algorithm(world.ctx));
    assert_int_equal(others * messages, sent.messages);
    assert_int_equal(others * bytes, sent.bytes);
}

static void assert_sent(size_t portion)
{
    assert_sent_in(messages_with(portion), head_of(portion) + portion);
}

/* The same in the first half; in the second, what is known of the parts so far, twice as much in each round. */
static void assert_sent_in_halves(size_t portion)
{
    const size_t others   = (size_t)world.size - 1;
    size_t       messages = others * messages_with(portion);

    for (size_t known = 1; known <= others; known *= 2) {
        const size_t parts = known < others + 1 - known ? known : others + 1 - known;
        messages += pieces_of(parts * (HEAD + portion));
    }
    assert_string_equal("halves", fsdp_last_algorithm(world.ctx));
    assert_int_equal(messages, sent.messages);
    assert_int_equal(others * (head_of(portion) + portion + HEAD + portion), sent.bytes);
}

static int sum_of_ranks(void)
{
    return world.size * (world.size + 1) / 2;
}

static float sum_of(size_t i)
{
    return (float)sum_of_ranks() * (float)(i % 17 + 1);
}

static void check_allgather(size_t count)
{
    begin();
    assert_int_equal(FSDP_OK, fsdp_allgather(world.ctx, world.in, world.out, count, FSDP_F32));
    if (world.puts_off && count == LONG) {
        assert_sent_in(messages_behind_head(LONG * sizeof(float)), HEAD + LONG * sizeof(float));
    } else {
        assert_sent(count * sizeof(float));
    }
    for (size_t i = 0; i < count * (size_t)world.size; i++) {
        const size_t rank = i / count;
        assert_true(world.out[i] == (float)(rank + 1) * (float)(i % count % 17 + 1));
    }
}

static void check_reduce_scatter(size_t count)
{
    begin();
    assert_int_equal(FSDP_OK, fsdp_reduce_scatter(world.ctx, world.in, world.out, count, FSDP_F32, FSDP_SUM));
    assert_sent(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        assert_true(world.out[i] == sum_of((size_t)world.rank * count + i));
    }
}

static void check_allreduce(size_t count)
{
    begin();
    assert_int_equal(FSDP_OK, fsdp_allreduce(world.ctx, world.in, world.out, count, FSDP_F32, FSDP_SUM));
    if (world.ctx->config.algo_allreduce == FSDP_ALGO_HALVES) {
        assert_string_equal("halves", fsdp_last_algorithm(world.ctx));
    } else {
        assert_sent(count * sizeof(float));
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(world.out[i] == sum_of(i));
    }
}

/* In place, no data comes into the output before this rank has sent what lies there. */
static void check_alltoall(size_t count, bool in_place)
{
    begin();
    if (in_place) {
        memcpy(world.out, world.in, (size_t)world.size * count * sizeof(float));
    }
    assert_int_equal(FSDP_OK,
                     fsdp_alltoall(world.ctx, in_place ? FSDP_IN_PLACE : world.in, world.out, count, FSDP_F32));
    assert_sent(count * sizeof(float));
    for (size_t i = 0; i < count * (size_t)world.size; i++) {
        const size_t from    = i / count;
        const size_t sent_as = (size_t)world.rank * count + i % count;
        assert_true(world.out[i] == (float)(from + 1) * (float)(sent_as % 17 + 1));
    }
}

/* A portion has a head of its own, and a table in front of the blocks. */
static void check_alltoallv(size_t count)
{
    enum { PORTION_HEAD = 16, ENTRY = 24, MOST_NODES = 8 };
    const size_t portion = PORTION_HEAD + ENTRY + (count * sizeof(float) + 7) / 8 * 8;
    size_t       counts[MOST_NODES], places[MOST_NODES];

    for (int r = 0; r < world.size; r++) {
        counts[r] = count;
        places[r] = (size_t)r * count;
    }
    begin();
    assert_int_equal(FSDP_OK, fsdp_alltoallv(world.ctx, world.in, counts, places, world.out, counts, places, FSDP_F32));
    assert_sent_in(messages_behind_head(portion), HEAD + portion);
    for (size_t i = 0; i < count * (size_t)world.size; i++) {
        const size_t from    = i / count;
        const size_t sent_as = (size_t)world.rank * count + i % count;
        assert_true(world.out[i] == (float)(from + 1) * (float)(sent_as % 17 + 1));
    }
}

/* One message to each other node, or two, and what that node needs: nothing waits for the agreement. */
static void data_travels_with_the_agreement(void **state)
{
    const size_t counts[] = {1, 64, 65, SHORT, 2047, 2048, 2049, LONG};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_allgather(counts[i]);
        check_reduce_scatter(counts[i]);
        check_allreduce(counts[i]);
        check_alltoall(counts[i], false);
        check_alltoall(counts[i], true);
        check_alltoallv(counts[i]);
    }
}

/* No byte more than MPI's own collectives send; nor for a barrier. With few tags, as some MPIs have, a head says who calls what. */
static void short_data_has_no_head(void **state)
{
    const size_t others = (size_t)world.size - 1;
    int *const   tags = &world.ctx->lanes[FSDPI_LANE_SHORT].messages.first_bare_tag, found = *tags;

    (void)state;
    check_allgather(3);
    assert_int_equal(others * 3 * sizeof(float), sent.bytes);
    begin();
    assert_int_equal(FSDP_OK, fsdp_barrier(world.ctx));
    assert_int_equal(others, sent.messages);
    assert_int_equal(0, sent.bytes);

    *tags = 16384;
    begin();
    assert_int_equal(FSDP_OK, fsdp_allreduce(world.ctx, world.in, world.out, 3, FSDP_F32, FSDP_SUM));
    assert_int_equal(others * (HEAD + 3 * sizeof(float)), sent.bytes);
    assert_true(world.out[2] == sum_of(2));
    *tags = found;
}

/* A node is sent its part, and then the parts that others have reduced. */
static void halves_send_each_byte_twice(void **state)
{
    const size_t parts[] = {64, 576, 2048, LONG};

    (void)state;
    world.ctx->config.algo_allreduce = FSDP_ALGO_HALVES;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        check_allreduce((size_t)world.size * parts[i]);
        assert_sent_in_halves(parts[i] * sizeof(float));
    }
    check_allreduce(1);
    check_allreduce(LONG + 1);
    world.ctx->config.algo_allreduce = FSDP_ALGO_INLINE;
}

/* Of two nodes, each has a place for the other's data before it comes, however long it is. */
static void data_is_expected(void **state)
{
    (void)state;
    check_allgather(LONG);
    assert_int_equal(expected_of(LONG * sizeof(float)), sent.expected);
    check_reduce_scatter(LONG);
    assert_int_equal(expected_of(LONG * sizeof(float)), sent.expected);
    check_alltoall(LONG, false);
    assert_int_equal(expected_of(LONG * sizeof(float)), sent.expected);
    check_allreduce(SHORT);
    assert_int_equal(0, sent.expected);
}

static void only_the_root_is_sent_to_or_sends(void **state)
{
    const int root = world.size - 1;

    (void)state;
    begin();
    assert_int_equal(FSDP_OK, fsdp_reduce(world.ctx, world.in, world.out, SHORT, FSDP_F32, FSDP_SUM, root));
    assert_int_equal(world.rank != root ? SHORT * sizeof(float) : 0, sent.bytes);
    begin();
    assert_int_equal(FSDP_OK, fsdp_broadcast(world.ctx, world.in, SHORT, FSDP_F32, root));
    assert_int_equal(world.rank == root ? (size_t)(world.size - 1) * SHORT * sizeof(float) : 0, sent.bytes);
    assert_true(world.in[3] == (float)world.size * 4);
}

/* What is between one and two portions of room: the limit itself, and one element more. */
static void what_is_too_long_goes_another_way(void **state)
{
    const size_t room =
        fsdpi_pairs_capacity(world.ctx->lanes[FSDPI_LANE_SHORT].box.rest_bytes, world.size, 1) / sizeof(float);
    float *in = calloc(room + 1, sizeof(float)), *out = calloc(room + 1, sizeof(float));

    (void)state;
    assert_true(in != NULL && out != NULL);
    for (size_t count = room; count <= room + 1; count++) {
        in[count - 1] = (float)(world.rank + 1);
        assert_int_equal(FSDP_OK, fsdp_allreduce(world.ctx, in, out, count, FSDP_F32, FSDP_SUM));
        assert_true(out[count - 1] == (float)sum_of_ranks());
        assert_true((strcmp("inline", fsdp_last_algorithm(world.ctx)) == 0) == (count == room));
    }
    free(in);
    free(out);
}

/* ---- calls that differ ---------------------------------------------------------------------------------------------- */

static void clear_output(void)
{
    fill_input();
    memset(world.out, 0, (size_t)world.size * 2 * LONG * sizeof(float));
}

/* No output has been written to, and the next calls find none of the messages of this one. */
static void assert_nothing_is_left(fsdp_status expected, fsdp_status found)
{
    assert_int_equal(expected, found);
    for (size_t i = 0; i < (size_t)world.size * 2 * LONG; i++) {
        assert_true(world.out[i] == 0);
    }
    check_allreduce(SHORT);
    check_allgather(LONG);
    clear_output();
}

static void lengths_that_differ_leave_nothing_behind(void **state)
{
    const size_t pairs[][2] = {{SHORT, LONG}, {LONG, SHORT}, {LONG, LONG - 1}, {LONG, 2 * LONG},
                               {1, SHORT},    {1, 2},        {64, 63},         {65, 64},
                               {LONG, 1},     {2047, 1900},  {2047, 1},        {LONG, 2047}};

    (void)state;
    clear_output();
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const size_t count = pairs[i][world.rank == 1];

        assert_nothing_is_left(FSDP_ERR_MISMATCH, fsdp_allgather(world.ctx, world.in, world.out, count, FSDP_F32));
        assert_nothing_is_left(FSDP_ERR_MISMATCH,
                               fsdp_reduce_scatter(world.ctx, world.in, world.out, count, FSDP_F32, FSDP_SUM));
        assert_nothing_is_left(FSDP_ERR_MISMATCH,
                               fsdp_allreduce(world.ctx, world.in, world.out, count, FSDP_F32, FSDP_MAX));
        assert_nothing_is_left(FSDP_ERR_MISMATCH, fsdp_alltoall(world.ctx, world.in, world.out, count, FSDP_F32));
    }
}

static void one_without_data_among_others_leaves_nothing_behind(void **state)
{
    (void)state;
    clear_output();
    for (int odd = 0; odd < world.size; odd++) {
        assert_nothing_is_left(FSDP_ERR_MISMATCH, world.rank == odd
                                                      ? fsdp_barrier(world.ctx)
                                                      : fsdp_allgather(world.ctx, world.in, world.out, LONG, FSDP_F32));
        assert_nothing_is_left(FSDP_ERR_ARG, fsdp_allreduce(world.ctx, world.rank == odd ? NULL : world.in, world.out,
                                                            LONG, FSDP_F32, FSDP_SUM));
    }
}

/* A rank that waits for other operations too does not let data ride that others do. */
static void check_what_only_some_offer(size_t count, int odd)
{
    fsdp_request *request;

    fill_input();
    if (world.rank == odd) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(world.ctx, world.in, world.out, count, FSDP_F32, FSDP_SUM, &request));
        assert_int_equal(FSDP_OK, fsdp_wait(request));
    } else {
        assert_int_equal(FSDP_OK, fsdp_allreduce(world.ctx, world.in, world.out, count, FSDP_F32, FSDP_SUM));
    }
    assert_true(world.out[count - 1] == sum_of(count - 1));
}

/* The same of a gather, whose parts have places of their own in the result. */
static void check_gather_that_only_some_offer(size_t count, int odd)
{
    fsdp_request *request;

    fill_input();
    clear_output();
    if (world.rank == odd) {
        assert_int_equal(FSDP_OK, fsdp_iallgather(world.ctx, world.in, world.out, count, FSDP_F32, &request));
        assert_int_equal(FSDP_OK, fsdp_wait(request));
    } else {
        assert_int_equal(FSDP_OK, fsdp_allgather(world.ctx, world.in, world.out, count, FSDP_F32));
    }
    for (size_t i = 0; i < count * (size_t)world.size; i++) {
        const size_t rank = i / count;
        assert_true(world.out[i] == (float)(rank + 1) * (float)(i % count % 17 + 1));
    }
}

static void what_only_some_offer_goes_another_way(void **state)
{
    const double rate = world.ctx->link.rate;

    (void)state;
    world.ctx->link.rate = 1; /* so that only blocking calls are brief */
    for (int odd = 0; odd < world.size; odd++) {
        check_what_only_some_offer(SHORT, odd);
        assert_string_not_equal("inline", fsdp_last_algorithm(world.ctx));
        check_what_only_some_offer(LONG, odd);
        check_gather_that_only_some_offer(2047, odd);
        check_gather_that_only_some_offer(LONG, odd);
        world.ctx->config.algo_allreduce = FSDP_ALGO_HALVES;
        check_what_only_some_offer(LONG, odd);
        assert_string_not_equal("halves", fsdp_last_algorithm(world.ctx));
        world.ctx->config.algo_allreduce = FSDP_ALGO_INLINE;
    }
    world.ctx->link.rate = rate;
}

static void halves_of_calls_that_differ_leave_nothing_behind(void **state)
{
    world.ctx->config.algo_allreduce = FSDP_ALGO_HALVES;
    lengths_that_differ_leave_nothing_behind(state);
    one_without_data_among_others_leaves_nothing_behind(state);
    world.ctx->config.algo_allreduce = FSDP_ALGO_INLINE;
}

/* ---- parts, and when they are sent and copied ------------------------------------------------------------------ */

/* One rank's input lies where its part belongs, so that it has nothing to copy and sends at once. */
static void check_in_place(int odd)
{
    float *const place = world.out + (size_t)world.rank * LONG;

    fill_input();
    clear_output();
    memcpy(place, world.in, world.rank == odd ? LONG * sizeof(float) : 0);
    assert_int_equal(
        FSDP_OK, fsdp_allgather(world.ctx, world.rank == odd ? FSDP_IN_PLACE : world.in, world.out, LONG, FSDP_F32));
    for (size_t i = 0; i < LONG * (size_t)world.size; i++) {
        const size_t rank = i / LONG;
        assert_true(world.out[i] == (float)(rank + 1) * (float)(i % LONG % 17 + 1));
    }
}

static void check_gathers_over(void **state, fsdpi_link link)
{
    const fsdpi_link measured = world.ctx->link;

    world.ctx->link = link;
    world.forgets   = true;
    data_is_expected(state);
    lengths_that_differ_leave_nothing_behind(state);
    one_without_data_among_others_leaves_nothing_behind(state);
    for (int odd = 0; odd < world.size; odd++) {
        check_in_place(odd);
    }
    world.forgets   = false;
    world.ctx->link = measured;
}

/* As where MPI reads the sender's memory: first where the sender's caches are faster than memory, then where they are not. */
static void parts_are_sent_when_all_have_agreed_or_at_once(void **state)
{
    fsdpi_link link = world.ctx->link;

    link.pulls     = true;
    link.cut       = 0;
    link.cold      = 0;
    world.puts_off = true;
    check_gathers_over(state, link);
    world.puts_off = false;
    link.fresh     = 1e9;
    link.cold      = 2e9;
    check_gathers_over(state, link);
}

/* As where the sender brings them. */
static void own_parts_are_copied_while_others_come(void **state)
{
    fsdpi_link link = world.ctx->link;

    link.pulls = false;
    check_gathers_over(state, link);
}

/* ---- data in pieces ------------------------------------------------------------------------------------------------- */

/*
 * All of the above, where a message of 1000 bytes is the longest that MPI sends at once; where data up to a length is cut; and where
 * the beginning of that follows its head, or, where it fits two messages, has none.
 */
static void pieces_do_as_one_message_does(void **state)
{
    const fsdpi_cut cuts[] = {{1000, SIZE_MAX},  {1000, 4 * LONG - 4}, {12288, 4 * LONG},
                              {12288, 4 * LONG}, {20000, 4 * LONG},    {9000, 4 * LONG}};
    const size_t    led[]  = {0, 0, 0, 4 * LONG, 4 * LONG, 4 * LONG};

    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        world.ctx->lanes[FSDPI_LANE_SHORT].exchange.led_until = led[i];
        world.ctx->lanes[FSDPI_LANE_SHORT].messages.cut       = cuts[i];
        data_travels_with_the_agreement(state);
        data_is_expected(state);
        halves_send_each_byte_twice(state);
        lengths_that_differ_leave_nothing_behind(state);
        one_without_data_among_others_leaves_nothing_behind(state);
        what_only_some_offer_goes_another_way(state);
    }
    world.ctx->lanes[FSDPI_LANE_SHORT].exchange.led_until = 0;
    world.ctx->lanes[FSDPI_LANE_SHORT].messages.cut       = (fsdpi_cut){0};
}

/* ---- the context ---------------------------------------------------------------------------------------------------- */

static int open_world(void **state)
{
    fsdp_config config;

    (void)state;
    world.rank = fsdp_test_rank();
    world.size = fsdp_test_size();
    world.in   = calloc((size_t)world.size * 2 * LONG, sizeof(float));
    world.out  = calloc((size_t)world.size * 2 * LONG, sizeof(float));
    fsdp_config_init(&config);
    config.node_size           = 1;
    config.progress            = FSDP_PROGRESS_INLINE; /* all is sent by this thread */
    config.log_level           = FSDP_LOG_OFF;
    config.algo_allgather      = FSDP_ALGO_INLINE;
    config.algo_reduce_scatter = FSDP_ALGO_INLINE;
    config.algo_allreduce      = FSDP_ALGO_INLINE;
    config.algo_broadcast      = FSDP_ALGO_INLINE;
    config.algo_reduce         = FSDP_ALGO_INLINE;
    config.algo_alltoall       = FSDP_ALGO_INLINE;
    if (world.in == NULL || world.out == NULL || fsdp_init(MPI_COMM_WORLD, &config, &world.ctx) != FSDP_OK) {
        return -1;
    }
    world.ctx->lanes[FSDPI_LANE_SHORT].exchange.in_pairs = true; /* whatever the link is like; */
    world.ctx->link.fresh                                = 1e9;  /* and nothing is put off */
    world.ctx->link.cold                                 = 2e9;
    fsdpi_pairs_settle(&world.ctx->lanes[FSDPI_LANE_SHORT].exchange, &(fsdpi_link){.rate = 3e9, .pulls = true});
    world.ctx->lanes[FSDPI_LANE_SHORT].messages.cut = (fsdpi_cut){0};
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    free(world.in);
    free(world.out);
    return fsdp_finalize(world.ctx) == FSDP_OK ? 0 : -1;
}

/* Which caches hold then, unlike other plain memory of that length. As between two ranks over memory, on cores far from each other. */
static void what_has_just_been_reduced_rides_again(void **state)
{
    enum { COUNT = 64 << 10 };
    static const fsdpi_link LINK = {.rate = 12e9, .fresh = 7.7e9, .alpha = 0.3e-6, .gap = 0.2e-6, .pulls = true};
    static float            in[COUNT], out[COUNT];

    (void)state;
    if (world.size != 2) {
        return;
    }
    world.ctx->config.algo_allreduce = FSDP_ALGO_AUTO;
    world.ctx->link                  = LINK;
    fsdpi_table_settle(&world.ctx->table, &world.ctx->nodes, &LINK);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < COUNT; i++) {
            in[i] = (float)(i % 17 + 1) * (float)(world.rank + 1);
        }
        world.ctx->rails.summed.at = again ? fsdpi_seconds() + 3600 : 0; /* however long this test is held up */
        assert_int_equal(FSDP_OK, fsdp_allreduce(world.ctx, in, out, COUNT, FSDP_F32, FSDP_SUM));
        assert_string_equal(again ? "inline" : "rails", fsdp_last_algorithm(world.ctx));
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(out[i] == sum_of(i));
        }
    }
    world.ctx->config.algo_allreduce = FSDP_ALGO_INLINE;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_travels_with_the_agreement),
        cmocka_unit_test(short_data_has_no_head),
        cmocka_unit_test(data_is_expected),
        cmocka_unit_test(halves_send_each_byte_twice),
        cmocka_unit_test(what_only_some_offer_goes_another_way),
        cmocka_unit_test(halves_of_calls_that_differ_leave_nothing_behind),
        cmocka_unit_test(only_the_root_is_sent_to_or_sends),
        cmocka_unit_test(what_is_too_long_goes_another_way),
        cmocka_unit_test(lengths_that_differ_leave_nothing_behind),
        cmocka_unit_test(parts_are_sent_when_all_have_agreed_or_at_once),
        cmocka_unit_test(own_parts_are_copied_while_others_come),
        cmocka_unit_test(one_without_data_among_others_leaves_nothing_behind),
        cmocka_unit_test(pieces_do_as_one_message_does),
        cmocka_unit_test(what_has_just_been_reduced_rides_again),
    };

    return fsdp_test_main(argc, argv, tests, open_world, close_world);
}
