/* Which results go past the caches, on a made-up context: no MPI. */
#include <string.h>

#include "collectives/reach/mover.h"
#include "kernels/host/walk.h"
#include "lib/context/context.h"
#include "tests/support/unit_test.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static unsigned char memory[16][2 * MIB]; /* nobody touches it */
static int           streamed, copied, reduced, reduced_past;

static void stream(void *out, const void *in, size_t bytes)
{
    (void)out, (void)in, (void)bytes;
    streamed++;
}

static void copy(void *out, const void *in, size_t bytes)
{
    (void)out, (void)in, (void)bytes;
    copied++;
}

static void reduce(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op,
                   size_t divisor)
{
    (void)out, (void)in, (void)n_in, (void)count, (void)dtype, (void)op, (void)divisor;
    reduced++;
}

static void reduce_into(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                        fsdp_dtype dtype, fsdp_redop op, size_t divisor, size_t n_past)
{
    (void)out, (void)n_out, (void)in, (void)n_in, (void)count, (void)dtype, (void)op, (void)divisor;
    reduced_past += n_past == 1;
}

static const fsdpi_kernels KERNELS = {.stream = stream, .copy = copy, .reduce = reduce, .reduce_into = reduce_into};

static fsdp_context *make_context(bool favours_past)
{
    static fsdp_context ctx;

    memset(&ctx, 0, sizeof ctx);
    ctx.kernels             = &KERNELS;
    ctx.nodes.size          = 2;
    ctx.machine.cache_bytes = (size_t)64 * MIB;
    atomic_store(&fsdpi_past_favoured, favours_past);
    return &ctx;
}

/* An allreduce, or an allgather of two, whose input is one of the buffers. */
static fsdp_request request_of(fsdp_context *ctx, int buffer, size_t in_bytes, size_t out_bytes)
{
    return (fsdp_request){.ctx  = ctx,
                          .call = {.in        = memory[buffer],
                                   .out       = memory[15],
                                   .in_bytes  = in_bytes,
                                   .out_bytes = out_bytes,
                                   .dtype     = FSDP_F32,
                                   .width     = sizeof(float)}};
}

/* However long the test is held up: what has been read stays so for an hour. */
static bool is_cold(fsdp_context *ctx, int buffer, size_t bytes)
{
    fsdp_request request = request_of(ctx, buffer, bytes, bytes);

    fsdpi_note_memory(&request);
    for (int i = 0; i < FSDPI_RECENT_READS; i++) {
        if (ctx->rails.reads[i].input == memory[buffer]) {
            ctx->rails.reads[i].at = 3600 + fsdpi_seconds();
        }
    }
    return request.is_cold;
}

static void inputs_of_the_last_operations_may_be_in_caches(void **state)
{
    fsdp_context *ctx = make_context(true);

    (void)state;
    assert_true(is_cold(ctx, 0, 16 * KIB));
    assert_false(is_cold(ctx, 0, 16 * KIB));
    for (int b = 1; b < FSDPI_RECENT_READS; b++) {
        assert_true(is_cold(ctx, b, 16 * KIB));
    }
    assert_false(is_cold(ctx, 0, 16 * KIB));
    for (int b = FSDPI_RECENT_READS; b < FSDPI_RECENT_READS + 4; b++) {
        assert_true(is_cold(ctx, b, 16 * KIB));
    }
    assert_true(is_cold(ctx, 1, 16 * KIB));  /* the oldest of them has been forgotten */
    assert_false(is_cold(ctx, 14, 4 * KIB)); /* so little that it does not matter */
}

static bool goes_past(fsdp_context *ctx, size_t in_bytes, size_t out_bytes, bool cold, bool in_place)
{
    fsdp_request request = request_of(ctx, 0, in_bytes, out_bytes);

    request.is_cold  = cold;
    request.call.out = in_place ? memory[0] : memory[15];
    return fsdpi_goes_past(&request);
}

static void what_caches_do_not_hold_goes_past_them_where_that_is_faster(void **state)
{
    fsdp_context *ctx = make_context(true);

    (void)state;
    assert_true(goes_past(ctx, 16 * KIB, 32 * KIB, true, false));
    assert_false(goes_past(ctx, 16 * KIB, 32 * KIB, false, false));
    assert_false(goes_past(ctx, 32 * KIB, 32 * KIB, true, true)); /* the result takes the place of what was read */
    assert_false(goes_past(ctx, 32 * KIB, 16 * KIB, true, true));
    assert_true(goes_past(ctx, 16 * KIB, 32 * KIB, true, true)); /* most of a gathered one does not */
    assert_true(goes_past(ctx, 3 * MIB, 3 * MIB, false, false));
    fsdp_request halves = request_of(ctx, 0, 32 * KIB, 32 * KIB);
    halves.is_cold = halves.in_halves = true; /* it is sent on */
    assert_false(fsdpi_goes_past(&halves));
    ctx = make_context(false);
    assert_false(goes_past(ctx, 16 * KIB, 32 * KIB, true, false));
    assert_false(goes_past(ctx, 3 * MIB, 3 * MIB, true, false));
    assert_true(goes_past(ctx, 5 * MIB, 5 * MIB, false, false));
}

/* Beside what MPI copies, only where it is always faster; on one node, where a call is large, too. */
static void parts_are_placed_past_the_caches_only_where_that_is_faster(void **state)
{
    (void)state;
    for (int favours = 0; favours < 2; favours++) {
        fsdp_request request = request_of(make_context(favours != 0), 0, (size_t)8 * MIB, (size_t)8 * MIB);

        streamed = copied = reduced = reduced_past = 0;
        fsdpi_host_mover.place(&request, memory[15], memory[0], KIB);
        fsdpi_host_mover.place_reduced(&request, memory[15], 2, KIB, FSDP_SUM, 2);
        assert_int_equal(favours, streamed);
        assert_int_equal(!favours, copied);
        assert_int_equal(favours, reduced_past);
        assert_int_equal(!favours, reduced);
        fsdpi_host_mover.copy(&request, memory[15], memory[0], KIB);
        fsdpi_host_mover.reduce_result(&request, memory[15], 2, KIB, FSDP_SUM, 2);
        assert_int_equal(favours + 1, streamed);
        assert_int_equal(favours + 1, reduced_past);
        request.call.out = memory[0];
        fsdpi_host_mover.place_reduced(&request, memory[0], 2, KIB, FSDP_SUM, 2); /* over what has just been read */
        assert_int_equal(!favours + 1, reduced);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_of_the_last_operations_may_be_in_caches),
        cmocka_unit_test(what_caches_do_not_hold_goes_past_them_where_that_is_faster),
        cmocka_unit_test(parts_are_placed_past_the_caches_only_where_that_is_faster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
