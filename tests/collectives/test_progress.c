/** @file Operations that advance without their caller, callers on several threads, and several contexts. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "tests/collectives/collective_test.h"

enum { PATIENCE_S = 300, N_THREADS = 4, ROUNDS = 50, COUNT = 3001 };

/* The context, if it has a thread of its own; else the test is skipped. */
static fsdp_context *with_thread(void **state)
{
    fsdp_context *ctx = *state;

    if (fsdp_has_progress_thread(ctx) == 0) {
        skip();
    }
    return ctx;
}

/* Looks, without a call of the library, until the last rank's part is there or PATIENCE_S have passed. */
__attribute__((no_sanitize("thread"))) /* to look at an output that is being written is what this is about */
static bool
comes_by_itself(const _Atomic int32_t *last, int32_t expected)
{
    const struct timespec nap   = {.tv_nsec = 1000000};
    const time_t          begin = time(NULL);

    while (atomic_load(last) != expected) {
        if (time(NULL) - begin > PATIENCE_S) {
            return false;
        }
        (void)nanosleep(&nap, NULL);
    }
    return true;
}

/* A sum that cannot be there before all ranks have taken part. */
static void check_completes_alone(fsdp_context *ctx, size_t count)
{
    _Atomic int32_t *values = calloc(count, sizeof *values);
    fsdp_request    *request;

    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        atomic_init(&values[i], 1);
    }
    assert_int_equal(
        FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, (int32_t *)(void *)values, count, FSDP_I32, FSDP_SUM, &request));
    for (size_t i = 0; i < count; i++) {
        assert_true(comes_by_itself(&values[i], fsdp_size(ctx)));
    }
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    free((void *)values);
}

static void an_operation_completes_while_the_caller_makes_no_call(void **state)
{
    fsdp_context *ctx = with_thread(state);

    check_completes_alone(ctx, 1);
    check_completes_alone(ctx, 5003);
    check_completes_alone(ctx, 200003);
}

static void several_operations_in_a_row_complete_without_a_call(void **state)
{
    fsdp_context   *ctx = with_thread(state);
    fsdp_request   *requests[20];
    _Atomic int32_t values[20];

    for (int i = 0; i < 20; i++) {
        atomic_init(&values[i], i + 1);
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, (int32_t *)(void *)&values[i], 1, FSDP_I32,
                                                  FSDP_SUM, &requests[i]));
    }
    assert_true(comes_by_itself(&values[19], 20 * fsdp_size(ctx)));
    for (int i = 0; i < 20; i++) {
        assert_int_equal((i + 1) * fsdp_size(ctx), atomic_load(&values[i]));
    }
    assert_int_equal(FSDP_OK, fsdp_wait_all(20, requests));
}

static void the_thread_rests_behind_its_work_and_starts_again(void **state)
{
    const struct timespec rest = {.tv_nsec = 50000000};
    fsdp_context         *ctx  = with_thread(state);

    for (int i = 0; i < 5; i++) {
        check_completes_alone(ctx, 100);
        (void)nanosleep(&rest, NULL);
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx)); /* on the caller's thread */
    }
    assert_true(fsdp_progress_cpu_seconds(ctx) >= 0);
}

/* ---- callers on several threads ------------------------------------------------------------------------------------- */

/* The operations of all threads take turns, and so have one order on all ranks. */
typedef struct turns {
    fsdp_context   *ctx;
    pthread_mutex_t lock;
    pthread_cond_t  moved;
    int             next;
} turns;

typedef struct caller {
    turns    *turns;
    int       number;
    int       wrong; /* operations that failed, or elements that are not what they should be */
    pthread_t thread;
} caller;

static fsdp_status issue_in_turn(turns *t, int turn, int32_t *values, fsdp_request **request)
{
    (void)pthread_mutex_lock(&t->lock);
    while (t->next != turn) {
        (void)pthread_cond_wait(&t->moved, &t->lock);
    }
    const fsdp_status status = fsdp_iallreduce(t->ctx, FSDP_IN_PLACE, values, COUNT, FSDP_I32, FSDP_SUM, request);
    t->next++;
    (void)pthread_cond_broadcast(&t->moved);
    (void)pthread_mutex_unlock(&t->lock);
    return status;
}

/* Waiting needs no turn. No assertion: cmocka's are for the main thread. */
static void *call_in_turn(void *argument)
{
    caller  *c      = argument;
    int32_t *values = malloc(COUNT * sizeof *values);

    for (int round = 0; round < ROUNDS && values != NULL; round++) {
        const int     turn = round * N_THREADS + c->number;
        fsdp_request *request;

        for (size_t i = 0; i < COUNT; i++) {
            values[i] = turn + (int32_t)i;
        }
        c->wrong += issue_in_turn(c->turns, turn, values, &request) != FSDP_OK || fsdp_wait(request) != FSDP_OK;
        for (size_t i = 0; i < COUNT; i++) {
            c->wrong += values[i] != (turn + (int32_t)i) * fsdp_size(c->turns->ctx);
        }
    }
    c->wrong += values == NULL;
    free(values);
    return NULL;
}

static void several_threads_call_one_context(void **state)
{
    turns  t = {.ctx = *state};
    caller callers[N_THREADS];
    int    provided;

    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_SERIALIZED) {
        skip();
    }
    (void)pthread_mutex_init(&t.lock, NULL);
    (void)pthread_cond_init(&t.moved, NULL);
    for (int i = 0; i < N_THREADS; i++) {
        callers[i] = (caller){.turns = &t, .number = i};
        assert_int_equal(0, pthread_create(&callers[i].thread, NULL, call_in_turn, &callers[i]));
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(0, pthread_join(callers[i].thread, NULL));
        assert_int_equal(0, callers[i].wrong);
    }
    (void)pthread_cond_destroy(&t.moved);
    (void)pthread_mutex_destroy(&t.lock);
}

/* ---- messages of the caller's own ----------------------------------------------------------------------------------- */

enum { MESSAGE_BYTES = 4 << 20, TAG = 7 };

typedef enum ending { BY_WAITING, BY_TESTING, WITHOUT_A_CALL } ending;

static void take_part(fsdp_context *ctx, ending how)
{
    _Atomic int32_t value;
    fsdp_request   *request;

    atomic_init(&value, 1);
    assert_int_equal(FSDP_OK,
                     fsdp_iallreduce(ctx, FSDP_IN_PLACE, (int32_t *)(void *)&value, 1, FSDP_I32, FSDP_SUM, &request));
    for (int done = 0; how == BY_TESTING && !done;) {
        assert_int_equal(FSDP_OK, fsdp_test(request, &done));
    }
    if (how == WITHOUT_A_CALL) {
        assert_true(comes_by_itself(&value, fsdp_size(ctx)));
    }
    if (how != BY_TESTING) {
        assert_int_equal(FSDP_OK, fsdp_wait(request));
    }
    assert_int_equal(fsdp_size(ctx), atomic_load(&value));
}

/*
 * Every other rank has begun to send when it comes to the operation; its neighbour only comes when it has received. That
 * takes MPI on the sender's side, where nobody waits for a message.
 */
static void send_across(fsdp_context *ctx, ending how)
{
    const int      rank = fsdp_rank(ctx);
    unsigned char *data = calloc(MESSAGE_BYTES, 1);

    assert_non_null(data);
    if (rank % 2 == 0 && rank + 1 < fsdp_size(ctx)) {
        MPI_Request message;

        MPI_Isend(data, MESSAGE_BYTES, MPI_BYTE, rank + 1, TAG, MPI_COMM_WORLD, &message);
        take_part(ctx, how);
        MPI_Wait(&message, MPI_STATUS_IGNORE);
    } else {
        if (rank % 2 == 1) {
            MPI_Recv(data, MESSAGE_BYTES, MPI_BYTE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        take_part(ctx, how);
    }
    free(data);
}

static void messages_of_the_caller_move_while_it_waits(void **state)
{
    send_across(*state, BY_WAITING);
}

static void messages_of_the_caller_move_while_it_tests(void **state)
{
    send_across(*state, BY_TESTING);
}

static void messages_of_the_caller_move_while_it_makes_no_call(void **state)
{
    send_across(with_thread(state), WITHOUT_A_CALL);
}

/* ---- contexts with a thread, and without ------------------------------------------------------------------------------ */

static int open_context(void **state, fsdp_progress progress)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.progress = (int)progress;
    if (fsdp_init(MPI_COMM_WORLD, &config, &ctx) != FSDP_OK) {
        return -1;
    }
    *state = ctx;
    return 0;
}

static int open_with_thread(void **state)
{
    return open_context(state, FSDP_PROGRESS_AUTO);
}

static int open_without_thread(void **state)
{
    return open_context(state, FSDP_PROGRESS_INLINE);
}

static void inline_means_no_thread(void **state)
{
    assert_int_equal(0, fsdp_has_progress_thread(*state));
    assert_true(fsdp_progress_cpu_seconds(*state) <= 0);
}

static double own_cpu_seconds(void)
{
    struct timespec used;

    assert_int_equal(0, clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* A rank that is late lets the others wait, asleep for the most part. */
static void a_wait_costs_what_it_takes_of_a_core(void **state)
{
    static const double   SHORT_WAITS = 0.05;
    const struct timespec late        = {.tv_nsec = 300000000};
    fsdp_context         *ctx         = *state;
    const bool            waits       = fsdp_rank(ctx) + 1 < fsdp_size(ctx);
    const double          waited = fsdp_wait_seconds(ctx), cost = fsdp_wait_cpu_seconds(ctx), own = own_cpu_seconds();

    if (!waits) {
        (void)nanosleep(&late, NULL);
    }
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    const double used = fsdp_wait_cpu_seconds(ctx) - cost;
    assert_true(used <= own_cpu_seconds() - own + SHORT_WAITS);
    assert_true(!waits || (used > 0 && fsdp_wait_seconds(ctx) - waited > 0));
    assert_true(fsdp_wait_cpu_seconds(NULL) <= 0);
}

/* ---- several contexts -------------------------------------------------------------------------------------------------- */

/* Those without a thread, which have to be opened and closed in one order on all ranks. */
static fsdp_context *open_inline(MPI_Comm comm)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.progress = FSDP_PROGRESS_INLINE;
    return fsdp_init(comm, &config, &ctx) == FSDP_OK ? ctx : NULL;
}

/* Waits for all ranks, by one call or by many. */
static void meet(fsdp_context *ctx, ending how)
{
    fsdp_request *request;

    if (how == BY_WAITING) {
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
        return;
    }
    assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &request));
    for (int done = 0; !done;) {
        assert_int_equal(FSDP_OK, fsdp_test(request, &done));
    }
}

static void meet_in_new_context(fsdp_context *ctx, ending how)
{
    fsdp_context *made = open_inline(MPI_COMM_WORLD);

    (void)ctx;
    (void)how;
    assert_non_null(made);
    assert_int_equal(FSDP_OK, fsdp_finalize(made));
}

/* Half of the ranks wait for `ahead` first, the others for the operation of `behind`, which has been issued before. */
static void cross(fsdp_context *ahead, fsdp_context *behind, void (*meet_there)(fsdp_context *, ending), ending how,
                  size_t count)
{
    const int32_t size   = fsdp_size(behind);
    int32_t      *values = malloc(count * sizeof *values);
    fsdp_request *request;

    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (int32_t)i;
    }
    assert_int_equal(FSDP_OK, fsdp_iallreduce(behind, FSDP_IN_PLACE, values, count, FSDP_I32, FSDP_SUM, &request));
    if (fsdp_rank(behind) % 2 == 0) {
        meet_there(ahead, how);
        assert_int_equal(FSDP_OK, fsdp_wait(request));
    } else {
        assert_int_equal(FSDP_OK, fsdp_wait(request));
        meet_there(ahead, how);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal((int32_t)i * size, values[i]);
    }
    free(values);
}

static const size_t CROSSED_COUNTS[] = {1, 5003, 1000003};
enum { N_CROSSED_COUNTS = 3 };

static void check_crossed(fsdp_context *ahead, void (*meet_there)(fsdp_context *, ending), ending how)
{
    fsdp_context *behind = open_inline(MPI_COMM_WORLD);

    assert_non_null(behind);
    for (int i = 0; i < N_CROSSED_COUNTS; i++) {
        cross(ahead, behind, meet_there, how, CROSSED_COUNTS[i]);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(behind));
}

static void contexts_without_a_thread_may_be_waited_for_in_any_order(void **state)
{
    check_crossed(*state, meet, BY_WAITING);
}

static void contexts_without_a_thread_may_be_tested_in_any_order(void **state)
{
    check_crossed(*state, meet, BY_TESTING);
}

static void a_context_without_a_thread_goes_on_while_one_with_a_thread_is_waited_for(void **state)
{
    check_crossed(*state, meet, BY_WAITING);
}

static void a_context_without_a_thread_goes_on_while_another_is_opened(void **state)
{
    check_crossed(*state, meet_in_new_context, BY_WAITING);
}

/* Each rank waits for its operations in another order, and each operation needs several steps of all ranks. */
static void many_contexts_without_a_thread_may_be_waited_for_in_any_order(void **state)
{
    enum { N = 5, MANY = 200003 };
    fsdp_context *each[N];
    fsdp_request *requests[N];
    int32_t      *values = calloc((size_t)N * MANY, sizeof *values);

    assert_non_null(values);
    for (int i = 0; i < N; i++) {
        each[i] = open_inline(MPI_COMM_WORLD);
        assert_non_null(each[i]);
        values[i * MANY + MANY - 1] = i + 1;
        assert_int_equal(FSDP_OK, fsdp_iallreduce(each[i], FSDP_IN_PLACE, values + (ptrdiff_t)i * MANY, MANY, FSDP_I32,
                                                  FSDP_SUM, &requests[i]));
    }
    for (int i = 0; i < N; i++) {
        const int turn = (i + fsdp_rank(*state)) % N;

        assert_int_equal(FSDP_OK, fsdp_wait(requests[turn]));
        assert_int_equal((turn + 1) * fsdp_size(*state), values[turn * MANY + MANY - 1]);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(FSDP_OK, fsdp_finalize(each[i]));
    }
    free(values);
}

typedef struct visitor {
    MPI_Comm comm;
    int      wrong;
} visitor;

/* No assertion: cmocka's are for the main thread. */
static void *come_and_go(void *argument)
{
    enum { VISITS = 3 };
    visitor *v = argument;

    for (int i = 0; i < VISITS; i++) {
        int32_t       value = 1;
        fsdp_context *ctx   = open_inline(v->comm);

        v->wrong += ctx == NULL || fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM) != FSDP_OK ||
                    value != fsdp_size(ctx);
        v->wrong += fsdp_finalize(ctx) != FSDP_OK;
    }
    return NULL;
}

static void contexts_come_and_go_while_another_thread_waits(void **state)
{
    int       provided;
    visitor   v = {.wrong = 0};
    pthread_t thread;

    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        skip();
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &v.comm);
    assert_int_equal(0, pthread_create(&thread, NULL, come_and_go, &v));
    for (int i = 0; i < ROUNDS; i++) {
        int32_t value = 1;

        assert_int_equal(FSDP_OK, fsdp_allreduce(*state, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM));
        assert_int_equal(fsdp_size(*state), value);
    }
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(0, v.wrong);
    MPI_Comm_free(&v.comm);
}

int main(int argc, char **argv)
{
#define WITH(test)    cmocka_unit_test_setup_teardown(test, open_with_thread, fsdp_test_close_context)
#define WITHOUT(test) cmocka_unit_test_setup_teardown(test, open_without_thread, fsdp_test_close_context)
    static const struct CMUnitTest tests[] = {
        WITH(a_wait_costs_what_it_takes_of_a_core),
        {"a_wait_costs_what_it_takes_of_a_core_without_a_thread", a_wait_costs_what_it_takes_of_a_core,
         open_without_thread, fsdp_test_close_context, NULL},
        WITH(an_operation_completes_while_the_caller_makes_no_call),
        WITH(several_operations_in_a_row_complete_without_a_call),
        WITH(the_thread_rests_behind_its_work_and_starts_again),
        WITH(several_threads_call_one_context),
        {"several_threads_call_one_context_without_a_thread", several_threads_call_one_context, open_without_thread,
         fsdp_test_close_context, NULL},
        WITH(messages_of_the_caller_move_while_it_waits),
        WITH(messages_of_the_caller_move_while_it_makes_no_call),
        {"messages_of_the_caller_move_without_a_thread", messages_of_the_caller_move_while_it_waits,
         open_without_thread, fsdp_test_close_context, NULL},
        WITHOUT(messages_of_the_caller_move_while_it_tests),
        WITHOUT(inline_means_no_thread),
        WITHOUT(contexts_without_a_thread_may_be_waited_for_in_any_order),
        WITHOUT(contexts_without_a_thread_may_be_tested_in_any_order),
        WITH(a_context_without_a_thread_goes_on_while_one_with_a_thread_is_waited_for),
        WITHOUT(a_context_without_a_thread_goes_on_while_another_is_opened),
        WITHOUT(many_contexts_without_a_thread_may_be_waited_for_in_any_order),
        WITHOUT(contexts_come_and_go_while_another_thread_waits),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
