/* How large the pieces are in which data travels between nodes, on made-up worlds: no MPI, no memory behind them. */
#include "collectives/rails/chunks.h"
#include "collectives/rails/route.h"
#include "lib/context/context.h"
#include "tests/support/unit_test.h"

enum { MIB = 1 << 20, SLOW_CHUNK = 48 << 10, FAST_CHUNK = 256 << 10, ORDERED_CHUNK = 32 << 10 };

/* A world of `nodes` nodes of `each` ranks, with the staging memory of the default settings; one node may be smaller. */
static void make_world(fsdp_context *ctx, int nodes, int each, int smallest)
{
    fsdp_config_init(&ctx->config);
    ctx->config.message_bytes = 1 << 30;
    ctx->config.chunk_bytes   = 0;
    ctx->size                 = nodes * each;
    ctx->nodes.count          = nodes;
    ctx->nodes.largest        = each;
    ctx->nodes.smallest       = smallest;
    ctx->link.rate            = 1e9;

    ctx->lanes[FSDPI_LANE_LONG].box.rest_bytes = (size_t)2 * MIB;
}

static fsdp_request request_of(fsdp_context *ctx, size_t whole_bytes, bool symmetric)
{
    return (fsdp_request){.ctx   = ctx,
                          .lane  = &ctx->lanes[FSDPI_LANE_LONG],
                          .flags = symmetric ? FSDPI_FLAG_SYMMETRIC : 0,
                          .call  = {.width    = sizeof(float),
                                    .dtype    = FSDP_F32,
                                    .count    = whole_bytes / sizeof(float) / (size_t)ctx->size,
                                    .whole    = whole_bytes / sizeof(float),
                                    .division = FSDPI_DIVISION_EQUAL}};
}

static size_t chunk_bytes(fsdp_context *ctx, size_t whole_bytes, unsigned route, bool symmetric)
{
    fsdp_request request = request_of(ctx, whole_bytes, symmetric);

    fsdpi_rails_size_chunks(&request, route);
    return ctx->rails.chunk * request.call.width;
}

static void a_fast_link_has_longer_chunks(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 2, 1, 1);
    assert_int_equal(SLOW_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, false));
    assert_int_equal(SLOW_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false));
    ctx.link.rate = 3e9;
    assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, false));
    assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false));
    assert_int_equal(FSDPI_RAILS_DEPTH, ctx.rails.depth);
}

/* Four each way of a short vector, so that one is copied or reduced while others come; none too short to be asked for. */
static void where_nobody_pulls_four_chunks_are_on_their_way(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 2, 1, 1);
    ctx.link.rate = 20e9;
    for (int gathers = 0; gathers < 2; gathers++) {
        const unsigned route = gathers ? FSDPI_GATHERS : FSDPI_REDUCES;

        assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, route, gathers));
        assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)2 * MIB, route, false));
        assert_int_equal(FAST_CHUNK / 2, chunk_bytes(&ctx, (size_t)1 * MIB, route, true));
        assert_int_equal(FAST_CHUNK / 2, chunk_bytes(&ctx, (size_t)MIB / 2, route, false));
        assert_int_equal(FAST_CHUNK / 2, chunk_bytes(&ctx, (size_t)MIB / 4, route, true));
    }
}

/* What the own core brings is not worth more messages, as long as it comes soon. */
static void what_the_own_core_brings_between_ranks_that_are_nodes_has_longer_chunks_still(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 2, 1, 1);
    ctx.link.pulls = true;
    ctx.link.rate  = 20e9;
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false));
    assert_int_equal(MIB, chunk_bytes(&ctx, (size_t)4 * MIB, FSDPI_GATHERS, false));
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)2 * MIB, FSDPI_GATHERS, false));
    ctx.link.rate = 2.5e9;
    assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false));
    make_world(&ctx, 4, 2, 2);
    ctx.link.rate = 20e9;
    assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, true));
}

/* As measured over vader. */
static const fsdpi_link NEAR = {.rate = 19.2e9, .fresh = 13.3e9, .cold = 10.0e9, .pulls = true};
static const fsdpi_link FAR  = {.rate = 17.7e9, .fresh = 8.2e9, .cold = 10.5e9, .pulls = true};
static const fsdpi_link EVEN = {
    .rate = 14.5e9, .fresh = 5.6e9, .cold = 5.3e9, .pulls = true}; /* on another processor */

static void unless_caches_are_faster_own_parts_come_last_and_chunks_are_longer(void **state)
{
    const fsdpi_link    pushed  = {.rate = 17.7e9, .fresh = 8.2e9, .cold = 10.5e9};
    const fsdpi_link    unknown = {.rate = 17.7e9, .fresh = 8.2e9, .pulls = true};
    static fsdp_context ctx;

    (void)state;
    assert_true(fsdpi_link_copies_last(&NEAR, (size_t)4 * MIB));
    assert_false(fsdpi_link_copies_last(&NEAR, (size_t)16 * MIB));
    assert_true(fsdpi_link_copies_last(&FAR, (size_t)16 * MIB));
    assert_true(fsdpi_link_copies_last(&EVEN, (size_t)16 * MIB));
    assert_true(fsdpi_link_copies_last(&FAR, SIZE_MAX));
    assert_false(fsdpi_link_copies_last(&pushed, (size_t)4 * MIB));
    assert_false(fsdpi_link_copies_last(&unknown, (size_t)16 * MIB));
    make_world(&ctx, 2, 1, 1);
    ctx.link = NEAR;
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, true));
    assert_false(ctx.rails.copies_last);
    ctx.link = FAR;
    assert_int_equal((size_t)2 * MIB, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, true));
    assert_int_equal((size_t)2 * MIB, chunk_bytes(&ctx, (size_t)4 * MIB, FSDPI_GATHERS, true));
    assert_true(ctx.rails.copies_last);
    assert_int_equal(MIB, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, true)); /* for which there are places */
    assert_int_equal(FSDPI_RAILS_DEPTH, ctx.rails.depth);
    make_world(&ctx, 4, 1, 1);
    ctx.link = FAR;
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, true));
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, true));
}

/* The pages of plain memory take longer to read than a message costs. */
static void the_halves_of_a_short_vector_come_whole_from_large_pages(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 2, 1, 1);
    ctx.link.pulls = true;
    ctx.link.rate  = 12e9;
    assert_int_equal(MIB / 8, chunk_bytes(&ctx, (size_t)MIB / 4, FSDPI_REDUCES | FSDPI_GATHERS, true));
    assert_int_equal(MIB / 16, chunk_bytes(&ctx, (size_t)MIB / 4, FSDPI_REDUCES | FSDPI_GATHERS, false));
    assert_int_equal(MIB / 8, chunk_bytes(&ctx, (size_t)MIB / 2, FSDPI_REDUCES | FSDPI_GATHERS, true));
    assert_int_equal(MIB / 8, chunk_bytes(&ctx, (size_t)MIB / 2, FSDPI_REDUCES | FSDPI_GATHERS, false));
}

/* Nothing happens while it comes, so that more of it at once would only push what came before out of the caches. */
static void what_the_own_core_brings_is_asked_for_one_by_one(void **state)
{
    static fsdp_context ctx;
    const fsdpi_stream *in = &ctx.rails.streams[FSDPI_PARTIALS_IN], *out = &ctx.rails.streams[FSDPI_PARTIALS_OUT];

    (void)state;
    make_world(&ctx, 2, 1, 1);
    ctx.link.rate  = 20e9;
    ctx.link.pulls = true;
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, false));
    assert_int_equal(1, in->window);
    assert_int_equal(FSDPI_RAILS_DEPTH, out->window);
    assert_int_equal(MIB, chunk_bytes(&ctx, (size_t)4 * MIB, FSDPI_REDUCES | FSDPI_GATHERS, false));
    assert_int_equal(1, ctx.rails.streams[FSDPI_PARTS_IN].window);
    assert_int_equal(FAST_CHUNK, chunk_bytes(&ctx, (size_t)1 * MIB, FSDPI_REDUCES | FSDPI_GATHERS, false));
    make_world(&ctx, 4, 1, 1);
    ctx.link.rate = 20e9;
    assert_int_equal(MIB / 2, chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, false));
    assert_int_equal(3, in->window); /* one of each other node */
    assert_int_equal(1, ctx.rails.in_turn);
    make_world(&ctx, 4, 2, 2);
    ctx.link.rate = 20e9;
    assert_true(chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, true) <= FAST_CHUNK);
    fsdp_request request   = request_of(&ctx, MIB, false);
    request.call.on_device = true; /* on device memory nothing of that was measured */
    assert_true(ctx.link.pulls && !fsdpi_rails_pulls(&request));
}

/* Who brings a chunk does not wait for the other's next look, unless both read the same at the same time. */
static void what_the_other_core_brings_is_announced_far_ahead(void **state)
{
    static fsdp_context ctx;
    const fsdpi_stream *out = &ctx.rails.streams[FSDPI_PARTS_OUT];

    (void)state;
    make_world(&ctx, 2, 1, 1);
    ctx.link = FAR;
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false);
    assert_int_equal(FSDPI_RAILS_FEW, out->window);
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES | FSDPI_GATHERS, false);
    assert_int_equal(FSDPI_RAILS_FEW, out->window);
    ctx.link.pulls = false;
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false);
    assert_int_equal(FSDPI_RAILS_DEPTH, out->window);
    ctx.link = NEAR;
    (void)chunk_bytes(&ctx, (size_t)4 * MIB, FSDPI_GATHERS, false);
    assert_int_equal(FSDPI_RAILS_FEW, out->window);
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false);
    assert_int_equal(FSDPI_RAILS_DEPTH, out->window);
    make_world(&ctx, 3, 1, 1);
    ctx.link = FAR;
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_GATHERS, false);
    assert_int_equal(fsdpi_rails_window(3), out->window);
}

/* A turn says which peer is next: one peer needs none, and would only be sent less at once. */
static void two_nodes_take_no_turns(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 2, 1, 1);
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, false);
    assert_false(ctx.rails.has_turns);
    make_world(&ctx, 3, 1, 1);
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES, false);
    assert_true(ctx.rails.has_turns);
    assert_int_equal(FSDPI_RAILS_DEPTH / 2, ctx.rails.in_turn); /* of four places that each sender has */
}

static void a_slow_link_takes_one_chunk_at_a_time(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 2, 1, 1);
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES | FSDPI_GATHERS, true);
    assert_int_equal(1, ctx.rails.at_once);
    ctx.link.rate = 3e9;
    (void)chunk_bytes(&ctx, (size_t)64 * MIB, FSDPI_REDUCES | FSDPI_GATHERS, true);
    assert_true(ctx.rails.at_once >= ctx.rails.depth);
}

static void more_data_rides_behind_a_head_over_a_slow_link(void **state)
{
    const fsdpi_link fast = {.rate = 3e9}, slow = {.rate = 1e9}, unknown = {.rate = 0};

    (void)state;
    assert_int_equal(8 << 10, fsdpi_link_together(&fast));
    assert_int_equal(32 << 10, fsdpi_link_together(&slow));
    assert_int_equal(32 << 10, fsdpi_link_together(&unknown));
}

static void data_is_cut_where_mpi_would_ask_first(void **state)
{
    const fsdpi_link slow = {.rate = 1e9}, fast = {.rate = 3e9},
                     asks_early   = {.rate = 3e9, .eager = 8 << 10, .cut = 32 << 10};
    const fsdpi_link asks_earlier = {.rate = 3e9, .eager = 4032, .cut = 8 * 4032};

    (void)state;
    assert_int_equal(48 << 10, fsdpi_link_cut(&slow).piece);
    assert_int_equal(128 << 10, fsdpi_link_cut(&slow).until);
    assert_int_equal(0, fsdpi_link_cut(&fast).until);
    assert_int_equal(8 << 10, fsdpi_link_cut(&asks_early).piece);
    assert_int_equal(32 << 10, fsdpi_link_cut(&asks_early).until);
    assert_int_equal(8 << 10, fsdpi_link_together(&asks_early));
    assert_int_equal(4032, fsdpi_link_cut(&asks_earlier).piece);
    assert_int_equal(8 * 4032, fsdpi_link_cut(&asks_earlier).until);
    assert_int_equal(4032 - 64, fsdpi_link_together(&asks_earlier)); /* with its head no longer than a piece */
}

/* As measured when a context was opened, on two far cores of an EPYC over UCX, over vader, and there without single copy. */
static void data_is_cut_up_to_where_pieces_take_longer(void **state)
{
    static const double UCX[] = {6.22, 7.83, 10.49, 16.04}, UCX_PIECES[] = {3.35, 5.91, 10.74, 20.62};
    static const double VADER[] = {5.50, 6.16, 7.60, 9.79}, VADER_PIECES[] = {2.97, 4.71, 8.52, 16.25};
    static const double PUSHED[] = {3.61, 4.23, 5.72, 8.30}, PUSHED_PIECES[] = {2.75, 4.72, 8.70, 16.42};
    static const double NEVER[] = {3.4, 5.2}, ALWAYS[] = {2.0, 4.0}, LONGER[] = {4.4, 4.0};
    static const double ASKS[] = {9.0, 10.0, 12.0}, FEW[] = {3.0, 5.0, 9.0};

    (void)state;
    assert_int_equal(7 * 8192, fsdpi_link_cut_until(8192, 4, UCX, UCX_PIECES));
    assert_int_equal(6 * 4032, fsdpi_link_cut_until(4032, 4, VADER, VADER_PIECES));
    assert_int_equal(3 * 4032, fsdpi_link_cut_until(4032, 4, PUSHED, PUSHED_PIECES));
    assert_int_equal(4 * 4032, fsdpi_link_cut_until(4032, 2, NEVER, ALWAYS));
    assert_int_equal(64 << 10, fsdpi_link_cut_until(16 << 10, 3, ASKS, FEW));     /* the most */
    assert_int_equal(4032 / 4 * 5, fsdpi_link_cut_until(4032, 2, NEVER, LONGER)); /* whatever four pieces take */
}

static void two_ranks_send_each_other_what_the_link_and_the_caches_favour(void **state)
{
    const fsdpi_link slow = {.rate = 1e9}, unknown = {.rate = 0};
    const fsdpi_link near = {
        .rate = 14.4e9, .fresh = 12.0e9, .pulls = true}; /* vader between near cores, as measured */
    const fsdpi_link far    = {.rate = 14.1e9, .fresh = 7.7e9, .pulls = true}; /* between far ones */
    const fsdpi_link beyond = {.rate = 15.2e9, .fresh = 8.5e9, .cold = 10.5e9, .pulls = true};
    const fsdpi_link pushed = {.rate = 27e9, .fresh = 23e9}; /* without single copy, near */

    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        assert_int_equal(SIZE_MAX, fsdpi_link_whole(&slow, cached));
        assert_int_equal(SIZE_MAX, fsdpi_link_whole(&unknown, cached));
        assert_int_equal(MIB / 4, fsdpi_link_whole(&pushed, cached));
    }
    assert_int_equal(MIB / 2, fsdpi_link_whole(&near, false));
    assert_int_equal(MIB / 8, fsdpi_link_whole(&far, false));
    assert_int_equal(MIB / 2, fsdpi_link_whole(&EVEN, false));
    assert_int_equal(MIB / 2, fsdpi_link_whole(&beyond, false));
    assert_int_equal(MIB / 2, fsdpi_link_whole(&near, true));
    assert_int_equal(4 * MIB, fsdpi_link_whole(&far, true));
    assert_int_equal(4 * MIB, fsdpi_link_whole(&beyond, true));
}

static void a_chunk_that_was_asked_for_is_used(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 4, 2, 2);
    ctx.config.chunk_bytes = 1000;
    assert_int_equal(960, chunk_bytes(&ctx, MIB, FSDPI_GATHERS, true)); /* whole cache lines */
    ctx.config.chunk_bytes = 3;
    assert_int_equal(4, chunk_bytes(&ctx, MIB, FSDPI_GATHERS, true)); /* an element at least */
    ctx.config.chunk_bytes   = MIB;
    ctx.config.message_bytes = 128;
    assert_int_equal(128, chunk_bytes(&ctx, MIB, FSDPI_GATHERS, true)); /* a message at most */
}

static void with_many_nodes_fewer_chunks_are_under_way(void **state)
{
    static fsdp_context ctx;

    (void)state;
    make_world(&ctx, 64, 1, 1);
    const size_t two = chunk_bytes(&ctx, (size_t)256 * MIB, FSDPI_REDUCES, true);
    assert_int_equal(2, ctx.rails.depth);
    assert_true(two >= (size_t)16 << 10);
    assert_false(ctx.rails.is_ordered);
    (void)chunk_bytes(&ctx, (size_t)64 * 24 << 10, FSDPI_REDUCES,
                      true); /* 24 KiB each: there is room for one, not for two */
    assert_int_equal(1, ctx.rails.depth);
    assert_true(ctx.rails.chunk * sizeof(float) >= (size_t)24 << 10);
    make_world(&ctx, 16, 1, 1);
    (void)chunk_bytes(&ctx, (size_t)64 << 10, FSDPI_REDUCES, true); /* 4 KiB each: there is no need to save */
    assert_int_equal(FSDPI_RAILS_DEPTH, ctx.rails.depth);
}

static void with_more_nodes_they_come_in_the_order_of_nodes(void **state)
{
    static fsdp_context ctx;

    (void)state;
    for (int nodes = 80; nodes <= 20000; nodes *= 2) {
        make_world(&ctx, nodes, 1, 1);
        assert_int_equal(ORDERED_CHUNK, chunk_bytes(&ctx, (size_t)nodes * MIB, FSDPI_REDUCES, true));
        assert_true(ctx.rails.is_ordered);
        assert_true(ctx.rails.streams[FSDPI_PARTIALS_IN].window >= 32);
        assert_int_equal(1, ctx.rails.in_turn);
        (void)chunk_bytes(&ctx, (size_t)nodes * MIB, FSDPI_GATHERS, true); /* which need no staging memory */
        assert_int_equal(SLOW_CHUNK, ctx.rails.chunk * sizeof(float));
    }
}

/* Behind the chunks under way, two places for what is being reduced. */
static void chunks_always_fit(void **state)
{
    static const int    each[] = {1, 2, 8, 64};
    static fsdp_context ctx;

    (void)state;
    for (int nodes = 2; nodes <= 8192; nodes = nodes * 3 / 2 + 1) {
        for (size_t i = 0; i < 2 * sizeof each / sizeof *each; i++) {
            for (size_t rest = (size_t)2 * MIB; rest >= 2048; rest /= 32) { /* down to the least that is accepted */
                make_world(&ctx, nodes, each[i / 2], i % 2 == 0 ? each[i / 2] : 1);
                ctx.lanes[FSDPI_LANE_LONG].box.rest_bytes = rest;
                for (size_t whole = MIB; whole <= (size_t)1024 * MIB; whole *= 4) {
                    const size_t chunk = chunk_bytes(&ctx, whole, FSDPI_REDUCES | FSDPI_GATHERS, true);
                    assert_true(ctx.rails.depth >= 1 && ctx.rails.depth <= FSDPI_RAILS_DEPTH);
                    assert_true((ctx.rails.places + (ctx.rails.is_ordered ? 2 : 1)) * chunk <= rest);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fast_link_has_longer_chunks),
        cmocka_unit_test(where_nobody_pulls_four_chunks_are_on_their_way),
        cmocka_unit_test(what_the_own_core_brings_between_ranks_that_are_nodes_has_longer_chunks_still),
        cmocka_unit_test(unless_caches_are_faster_own_parts_come_last_and_chunks_are_longer),
        cmocka_unit_test(the_halves_of_a_short_vector_come_whole_from_large_pages),
        cmocka_unit_test(what_the_own_core_brings_is_asked_for_one_by_one),
        cmocka_unit_test(what_the_other_core_brings_is_announced_far_ahead),
        cmocka_unit_test(two_nodes_take_no_turns),
        cmocka_unit_test(a_slow_link_takes_one_chunk_at_a_time),
        cmocka_unit_test(more_data_rides_behind_a_head_over_a_slow_link),
        cmocka_unit_test(data_is_cut_where_mpi_would_ask_first),
        cmocka_unit_test(data_is_cut_up_to_where_pieces_take_longer),
        cmocka_unit_test(two_ranks_send_each_other_what_the_link_and_the_caches_favour),
        cmocka_unit_test(a_chunk_that_was_asked_for_is_used),
        cmocka_unit_test(with_many_nodes_fewer_chunks_are_under_way),
        cmocka_unit_test(with_more_nodes_they_come_in_the_order_of_nodes),
        cmocka_unit_test(chunks_always_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
