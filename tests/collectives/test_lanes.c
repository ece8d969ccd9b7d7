/*
 * Short operations while long ones cannot get on: these stand behind a gate, an operation in the long lane that this test opens,
 * so that nothing depends on how long anything takes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/context/context.h"
#include "tests/collectives/collective_test.h"

enum { GATE_ID = 60, N_GATHERS = 16, LENGTH = 100003 };

/* ---- a gate -------------------------------------------------------------------------------------------------------- */

static _Atomic int open_gates; /* those that have been issued up to here may end */

static fsdp_status pass(fsdp_request *request, fsdpi_progress *progress)
{
    *progress = (int)request->call.salt < atomic_load(&open_gates) ? FSDPI_FINISHED : FSDPI_WAITING;
    return FSDP_OK;
}

static const fsdpi_algorithm THE_GATE = {.name = "gate", .advance = pass, .leaves_together = true};

static const fsdpi_algorithm *choose(fsdp_request *request)
{
    (void)request;
    return &THE_GATE;
}

static const fsdpi_collective GATE = {.name = "gate", .id = GATE_ID, .choose = choose};

static int issued_gates;

static fsdp_request *issue_gate(fsdp_context *ctx)
{
    const fsdpi_call call = {.collective = &GATE, .name = "a gate", .is_step = true, .salt = (uint64_t)issued_gates++};
    fsdp_request    *request = NULL;

    assert_int_equal(FSDP_OK, fsdpi_issue(ctx, &call, FSDP_OK, &request));
    return request;
}

static void open_all_gates(void)
{
    atomic_store(&open_gates, issued_gates);
}

static bool is_done(const fsdp_request *request)
{
    return atomic_load(&request->state) == FSDPI_REQUEST_DONE;
}

/* ---- what does not wait -------------------------------------------------------------------------------------------- */

static void short_operations_do_not_wait_for_data_that_moves(void **state)
{
    const contexts *c   = *state;
    fsdp_context   *ctx = c->each[0];
    fsdp_request   *gate, *barrier;

    gate = issue_gate(ctx);
    for (int i = 0; i < 3; i++) {
        float sum = (float)c->rank;
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_F32, FSDP_SUM));
        assert_true(2 * sum == (float)(c->size * (c->size - 1)));
    }
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &barrier));
    assert_int_equal(FSDP_OK, fsdp_wait(barrier));
    assert_int_equal(FSDP_OK, fsdp_agree(ctx, FSDP_OK, NULL));
    assert_false(is_done(gate));
    open_all_gates();
    assert_int_equal(FSDP_OK, fsdp_wait(gate));
}

static int32_t element(int rank, size_t i, int round)
{
    return (int32_t)((size_t)rank * 1000003 + i * 7 + (size_t)round);
}

/* `symmetric`: in two buffers of the context. */
typedef struct gathers {
    int32_t      *in, *out;
    fsdp_request *requests[N_GATHERS];
    bool          symmetric;
} gathers;

static int32_t *allocate(fsdp_context *ctx, size_t count, bool symmetric)
{
    void *memory = NULL;

    if (symmetric) {
        assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, count * sizeof(int32_t), &memory));
    } else {
        memory = malloc(count * sizeof(int32_t));
    }
    assert_non_null(memory);
    return memory;
}

static void release(fsdp_context *ctx, void *memory, bool symmetric)
{
    if (symmetric) {
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    } else {
        free(memory);
    }
}

static gathers make_gathers(const contexts *c, bool symmetric)
{
    return (gathers){.in        = allocate(c->each[0], (size_t)N_GATHERS * LENGTH, symmetric),
                     .out       = allocate(c->each[0], (size_t)N_GATHERS * LENGTH * (size_t)c->size, symmetric),
                     .symmetric = symmetric};
}

static void issue_gathers(const contexts *c, gathers *g)
{
    const size_t part = LENGTH, whole = part * (size_t)c->size;

    for (size_t k = 0; k < N_GATHERS; k++) {
        for (size_t i = 0; i < part; i++) {
            g->in[k * part + i] = element(c->rank, i, (int)k);
        }
        memset(g->out + k * whole, 0, whole * sizeof(int32_t));
        assert_int_equal(FSDP_OK, fsdp_iallgather(c->each[0], g->in + k * part, g->out + k * whole, part, FSDP_I32,
                                                  &g->requests[k]));
    }
}

static void end_gathers(const contexts *c, gathers *g)
{
    for (size_t k = 0; k < N_GATHERS; k++) {
        assert_int_equal(FSDP_OK, fsdp_wait(g->requests[k]));
        for (size_t i = 0; i < (size_t)LENGTH * (size_t)c->size; i++) {
            const int32_t expected = element((int)(i / LENGTH), i % LENGTH, (int)k);
            if (g->out[k * LENGTH * (size_t)c->size + i] != expected) {
                assert_int_equal(expected, g->out[k * LENGTH * (size_t)c->size + i]);
            }
        }
    }
    release(c->each[0], g->out, g->symmetric);
    release(c->each[0], g->in, g->symmetric);
}

static void gathers_that_are_queued_hold_up_no_sum(void **state)
{
    const contexts *c = *state;

    for (int symmetric = 0; symmetric < 2; symmetric++) {
        gathers       g       = make_gathers(c, symmetric != 0);
        fsdp_request *gate    = issue_gate(c->each[0]);
        double        sums[2] = {1, c->rank};

        issue_gathers(c, &g);
        assert_int_equal(FSDP_OK, fsdp_allreduce(c->each[0], FSDP_IN_PLACE, sums, 2, FSDP_F64, FSDP_SUM));
        assert_true(sums[0] == c->size && sums[1] == c->size * (c->size - 1) / 2.0);
        assert_false(is_done(g.requests[0]));
        open_all_gates();
        end_gathers(c, &g);
        assert_int_equal(FSDP_OK, fsdp_wait(gate));
    }
}

/* Each of these moves by another algorithm, and uses the staging memory that the one before has used. */
static void what_is_queued_moves_in_the_order_of_issue(void **state)
{
    enum { KINDS = 4, ROUNDS = 5 };
    const contexts *c   = *state;
    fsdp_context   *ctx = c->each[0];
    const size_t    n   = (size_t)4096 * (size_t)c->size;
    int64_t        *in = malloc(n * sizeof *in), *out = calloc(ROUNDS * KINDS * n, sizeof *out);
    fsdp_request   *gate  = issue_gate(ctx), *requests[ROUNDS * KINDS];
    const int64_t   ranks = (int64_t)c->size * (c->size - 1) / 2;

    for (size_t i = 0; i < n; i++) {
        in[i] = (int64_t)i * c->size + c->rank;
    }
    for (size_t r = 0; r < ROUNDS; r++) {
        int64_t       *to  = out + r * KINDS * n;
        fsdp_request **one = requests + r * KINDS;

        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, in, to, n, FSDP_I64, FSDP_SUM, &one[0]));
        assert_int_equal(FSDP_OK, fsdp_ialltoall(ctx, in, to + n, 4096, FSDP_I64, &one[1]));
        assert_int_equal(FSDP_OK, fsdp_ireduce_scatter(ctx, in, to + 2 * n, 4096, FSDP_I64, FSDP_SUM, &one[2]));
        memcpy(to + 3 * n, in, n * sizeof *in);
        assert_int_equal(FSDP_OK, fsdp_ibroadcast(ctx, to + 3 * n, n, FSDP_I64, c->size - 1, &one[3]));
    }
    open_all_gates();
    for (size_t k = ROUNDS * KINDS; k-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_wait(requests[k]));
    }
    assert_int_equal(FSDP_OK, fsdp_wait(gate));
    for (size_t r = 0; r < ROUNDS; r++) {
        const int64_t *to = out + r * KINDS * n;

        for (size_t i = 0; i < n; i++) {
            const size_t at = (size_t)c->rank * 4096 + i % 4096;

            assert_true(to[i] == (int64_t)i * c->size * c->size + ranks);
            assert_true(to[n + i] == (int64_t)at * c->size + (int64_t)(i / 4096));
            assert_true(i >= 4096 || to[2 * n + i] == (int64_t)at * c->size * c->size + ranks);
            assert_true(to[3 * n + i] == (int64_t)i * c->size + c->size - 1);
        }
    }
    free(in);
    free(out);
}

/* ---- errors ---------------------------------------------------------------------------------------------------------- */

static void a_mismatch_is_found_while_data_cannot_move(void **state)
{
    const contexts *c    = *state;
    fsdp_context   *ctx  = c->each[0];
    gathers         g    = make_gathers(c, false);
    fsdp_request   *gate = issue_gate(ctx);
    int32_t         sum  = 1;

    issue_gathers(c, &g);
    const fsdp_status expected = c->size > 1 ? FSDP_ERR_MISMATCH : FSDP_OK;
    assert_int_equal(expected, c->rank == 0 ? fsdp_barrier(ctx)
                                            : fsdp_allreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_allreduce(ctx, FSDP_IN_PLACE, c->rank == c->size - 1 ? NULL : &sum, 1, FSDP_I32, FSDP_SUM));
    assert_false(is_done(gate));
    open_all_gates();
    end_gathers(c, &g);
    assert_int_equal(FSDP_OK, fsdp_wait(gate));
}

/* ---- what does wait -------------------------------------------------------------------------------------------------- */

static void *open_later(void *gate)
{
    while (atomic_load(&((fsdp_request *)gate)->state) != FSDPI_REQUEST_MOVING) {
        (void)sched_yield();
    }
    open_all_gates();
    return NULL;
}

/* Its memory may be what is still moving. */
static void a_buffer_is_released_when_all_before_it_is_done(void **state)
{
    const contexts *c      = *state;
    void           *buffer = NULL;
    pthread_t       thread;

    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(c->each[0], FSDP_BUFFER_PER_RANK, 100, &buffer));
    fsdp_request *gate = issue_gate(c->each[0]);
    assert_int_equal(0, pthread_create(&thread, NULL, open_later, gate));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(c->each[0], buffer));
    assert_true(is_done(gate));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(FSDP_OK, fsdp_wait(gate));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_operations_do_not_wait_for_data_that_moves),
        cmocka_unit_test(gathers_that_are_queued_hold_up_no_sum),
        cmocka_unit_test(what_is_queued_moves_in_the_order_of_issue),
        cmocka_unit_test(a_mismatch_is_found_while_data_cannot_move),
        cmocka_unit_test(a_buffer_is_released_when_all_before_it_is_done),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
