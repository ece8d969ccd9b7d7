/**
 * @file
 * Pipelines have the losses and parameters of one rank that computes micro-batch after micro-batch, bit by bit: by all schedules, in
 * several pipelines beside each other, within a node and between nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shard/pipeline/generate.h"
#include "shard/pipeline/lower.h"
#include "shard/pipeline/schedule_text.h"
#include "tests/shard/pipeline/net.h"

enum { STEPS = 2, PARAMETERS = NET_WIDTH * (NET_WIDTH + 1) };

/* How a pipeline is made, and beside how many others. */
typedef struct shape {
    const char *schedule, *text;
    int         pipes, each, micros, buffers, node_size, local_gradients, bare;
} shape;

typedef struct place {
    fsdp_context  *ctx;
    fsdp_pipeline *pipeline;
    net            n, serial;
} place;

static fsdp_context *open_context(MPI_Comm comm, int node_size)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size = node_size;
    assert_int_equal(FSDP_OK, fsdp_init(comm, &config, &ctx));
    return ctx;
}

static void set_units(place *p, int stages)
{
    for (int s = 0; s < stages; s++) {
        if (fsdp_pipeline_rank_of_stage(p->pipeline, s) == fsdp_rank(p->ctx)) {
            assert_int_equal(FSDP_OK, fsdp_pipeline_set_units(p->pipeline, s, &p->n.units[s], p->n.units[s] != NULL));
        }
    }
}

static void create_pipeline(place *p, const shape *o)
{
    fsdp_pipeline_options   options   = FSDP_PIPELINE_OPTIONS_DEFAULT;
    fsdp_pipeline_callbacks callbacks = NET_CALLBACKS;

    options.schedule        = o->schedule;
    options.text            = o->text;
    options.stages_per_rank = o->each;
    options.micros          = o->text != NULL ? 0 : o->micros;
    options.buffers         = o->buffers;
    options.bytes           = NET_BYTES;
    options.output_bytes    = NET_BYTES;
    callbacks.user          = &p->n;
    assert_int_equal(FSDP_OK, fsdp_pipeline_create(p->ctx, &options, &callbacks, &p->pipeline));
    set_units(p, fsdp_size(p->ctx) * o->each);
}

static void open_place(place *p, const shape *o)
{
    const int ranks = fsdp_test_size() / o->pipes, rank = fsdp_test_rank() % ranks;
    const int pipe = fsdp_test_rank() / ranks, stages = ranks * o->each;
    MPI_Comm  along, across;
    int       here[NET_STAGES], all[NET_STAGES];

    for (int s = 0; s < stages; s++) {
        here[s] = s % ranks == rank;
        all[s]  = 1;
    }
    MPI_Comm_split(MPI_COMM_WORLD, pipe, rank, &along);
    MPI_Comm_split(MPI_COMM_WORLD, rank, pipe, &across);
    p->ctx = open_context(along, o->node_size);
    net_open(&p->n, across, stages, o->micros, o->bare, here, o->local_gradients);
    net_open(&p->serial, across, stages, o->micros, o->bare, all, o->local_gradients);
    p->n.data = p->serial.data = pipe;
    MPI_Comm_free(&along);
    MPI_Comm_free(&across);
    create_pipeline(p, o);
}

static void close_place(place *p)
{
    fsdp_pipeline_destroy(p->pipeline);
    net_close(&p->n);
    net_close(&p->serial);
    assert_int_equal(FSDP_OK, fsdp_finalize(p->ctx));
}

static void compare_parameters(place *p)
{
    for (int s = 0; s < p->n.stages; s++) {
        float mine[PARAMETERS], theirs[PARAMETERS];

        if (p->n.units[s] != NULL) {
            net_parameters(&p->n, s, mine);
            net_parameters(&p->serial, s, theirs);
            assert_memory_equal(mine, theirs, sizeof mine);
        }
    }
}

/* A step of both, and forward passes alone before it; the same bits. */
static void step_and_compare(place *p)
{
    double loss = -1, evaluated = -1;

    assert_int_equal(FSDP_OK, fsdp_pipeline_evaluate(p->pipeline, &evaluated));
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(p->pipeline, &loss));
    const double expected = net_serial_step(&p->serial);
    assert_memory_equal(&loss, &expected, sizeof loss);
    assert_memory_equal(&evaluated, &expected, sizeof evaluated);
    net_update(&p->n);
    net_update(&p->serial);
}

static void train(const shape *o)
{
    place p;

    open_place(&p, o);
    for (int step = 0; step < STEPS; step++) {
        step_and_compare(&p);
    }
    compare_parameters(&p);
    close_place(&p);
}

/* ---- schedules ----------------------------------------------------------------------------------------------------------- */

static const char *const KINDS[] = {"gpipe", "1f1b", "interleaved", "zb-h1"};

static void for_all_schedules(int micros, int pipes, int node_size, int local_gradients, int buffers)
{
    for (int k = 0; k < 4; k++) {
        const shape o = {.schedule        = KINDS[k],
                         .pipes           = pipes,
                         .each            = k == 2 ? 2 : 1,
                         .micros          = micros - (k == 2 ? micros % (fsdp_test_size() / pipes) : 0),
                         .buffers         = buffers,
                         .node_size       = node_size,
                         .local_gradients = local_gradients,
                         .bare            = -1};
        train(&o);
    }
}

static void all_schedules_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    for_all_schedules(2 * fsdp_test_size() + 1, 1, 0, 0, 1);
}

static void so_have_those_whose_messages_go_between_nodes(void **state)
{
    (void)state;
    for_all_schedules(2 * fsdp_test_size() + 1, 1, 1, 1, 2);
    for_all_schedules(fsdp_test_size(), 1, 2, 1, 1);
}

static void so_have_several_pipelines_beside_each_other(void **state)
{
    (void)state;
    if (fsdp_test_size() % 2 == 0) {
        for_all_schedules(fsdp_test_size(), 2, 0, 1, 1);
        for_all_schedules(fsdp_test_size() + 1, 2, 1, 0, 2);
    }
}

static void a_stage_without_parameters_is_one_like_others(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        const shape o = {.schedule = KINDS[k],
                         .pipes    = 1,
                         .each     = k == 2 ? 2 : 1,
                         .micros   = fsdp_test_size(),
                         .buffers  = 1,
                         .bare     = fsdp_test_size() * (k == 2 ? 2 : 1) - 1};
        if (fsdp_test_size() > 1) {
            train(&o);
        }
    }
}

/* Of compute alone, or lowered. */
static char *text_of(fsdpi_pipeline_kind kind, int each, int micros, bool lowered)
{
    fsdpi_schedule schedule, with_messages;
    fsdpi_passes   passes;
    fsdpi_flaw     flaw;
    char          *text  = NULL;
    size_t         bytes = 0;

    assert_true(fsdpi_generate(&schedule, kind, fsdp_test_size(), each, micros, &flaw));
    assert_true(fsdpi_passes_open(&passes, &schedule, &flaw));
    assert_true(fsdpi_lower(&passes, &with_messages, &flaw));
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    fsdpi_schedule_write(lowered ? &with_messages : &schedule, file);
    assert_int_equal(0, fclose(file));
    fsdpi_passes_close(&passes);
    fsdpi_schedule_close(&with_messages);
    fsdpi_schedule_close(&schedule);
    return text;
}

static void schedules_come_as_text_too(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        const int each = k == FSDPI_INTERLEAVED ? 2 : 1;

        for (int lowered = 0; lowered < 2; lowered++) {
            char       *text = text_of((fsdpi_pipeline_kind)k, each, fsdp_test_size(), lowered != 0);
            const shape o    = {
                   .text = text, .pipes = 1, .each = each, .micros = fsdp_test_size(), .buffers = 1, .bare = -1};
            train(&o);
            free(text);
        }
    }
}

/* ---- messages under way --------------------------------------------------------------------------------------------------- */

enum { LONG_BYTES = 1 << 20, LONG_MICROS = 4 };

/* Stage 1 computes with the first micro-batch until stage 0 has begun with the last one. */
typedef struct meeting {
    int *last_has_begun; /* seen by all ranks */
} meeting;

static fsdp_status forward_and_meet(void *user, int stage, int micro, const void *in, void *out)
{
    const meeting *m     = user;
    const double   begun = MPI_Wtime();

    if (stage == 0 && micro == LONG_MICROS - 1) {
        __atomic_store_n(m->last_has_begun, 1, __ATOMIC_RELEASE);
    }
    while (stage == 1 && micro == 0 && __atomic_load_n(m->last_has_begun, __ATOMIC_ACQUIRE) == 0) {
        if (MPI_Wtime() - begun > 60) {
            return FSDP_ERR_TIMEOUT;
        }
        (void)usleep(1000);
    }
    memset(out, micro, LONG_BYTES);
    return in == NULL || *(const unsigned char *)in == micro ? FSDP_OK : FSDP_ERR_IO;
}

static fsdp_status no_loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    (void)user, (void)micro, (void)out;
    memset(grad_out, 0, LONG_BYTES);
    *value = 0;
    return FSDP_OK;
}

static fsdp_status no_gradient(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    (void)user, (void)micro, (void)in, (void)grad_out;
    if (stage > 0) {
        memset(grad_in, 0, LONG_BYTES);
    }
    return FSDP_OK;
}

/* Stage 0 may not have more than one message under way: the receiver has to take the others while it computes. */
static void messages_arrive_while_the_receiver_computes(void **state)
{
    fsdp_pipeline_options   options   = FSDP_PIPELINE_OPTIONS_DEFAULT;
    fsdp_pipeline_callbacks callbacks = {
        .size = sizeof callbacks, .forward = forward_and_meet, .loss = no_loss, .backward_input = no_gradient};
    fsdp_context  *ctx = open_context(MPI_COMM_WORLD, 1);
    fsdp_pipeline *pipeline;
    meeting        m;
    MPI_Win        window;

    (void)state;
    if (fsdp_test_size() < 2 || !fsdp_has_progress_thread(ctx)) {
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
        return;
    }
    assert_int_equal(MPI_SUCCESS, MPI_Win_allocate_shared(fsdp_test_rank() == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL,
                                                          MPI_COMM_WORLD, &m.last_has_begun, &window));
    MPI_Aint bytes;
    int      unit;
    MPI_Win_shared_query(window, 0, &bytes, &unit, &m.last_has_begun);
    if (fsdp_test_rank() == 0) {
        *m.last_has_begun = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    options.schedule     = "gpipe";
    options.micros       = LONG_MICROS;
    options.bytes        = LONG_BYTES;
    options.output_bytes = LONG_BYTES;
    callbacks.user       = &m;
    assert_int_equal(FSDP_OK, fsdp_pipeline_create(ctx, &options, &callbacks, &pipeline));
    assert_int_equal(FSDP_OK, fsdp_pipeline_set_units(pipeline, fsdp_rank(ctx), NULL, 0));
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(pipeline, NULL));
    fsdp_pipeline_destroy(pipeline);
    MPI_Win_free(&window);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static size_t buffers_of(fsdp_context *ctx, size_t *on_device)
{
    fsdp_memory memory;

    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
    *on_device = memory.device;
    return memory.current[FSDP_MEMORY_BUFFERS];
}

#ifdef FSDP_TESTS_PIPELINE_ON_DEVICE_H
static int is_on_device(void)
{
    const char *where = getenv("PIPELINE_ON_DEVICE");

    return where == NULL || strcmp(where, "host") != 0;
}

static int peers_share(void)
{
    return getenv("HIP_DOUBLE_NO_IPC") == NULL;
}

static int mpi_takes_it(void)
{
    return getenv("FSDP_GPU_AWARE_MPI") != NULL;
}
#else
static int is_on_device(void)
{
    return 0;
}

static int peers_share(void)
{
    return 0;
}

static int mpi_takes_it(void)
{
    return 0;
}
#endif

static size_t up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/*
 * The activations of 1f1b on one node with 2 p micro-batches, counted by hand: rank r holds p - r of them. On GPUs that read each
 * other's memory, what leaves is in GPU memory, and handles of events lie behind the notes: for both directions on both sides.
 */
static fsdp_pipeline_info expected_bytes(int ranks, int rank, int on_device)
{
    enum { LINE = 64, ALLOCATION = 256, NOTE = 24, HANDLE = 64, OUT = 2 }; /* one is made, one is not received yet */
    const size_t held = (size_t)(ranks - rank), one = up(NET_BYTES, LINE);
    const size_t sides = rank > 0 && rank + 1 < ranks ? 2 : 1, places = sides * OUT * one;
    const size_t in = rank > 0 ? held * one : 0, gradient = rank + 1 == ranks ? 2 * one : one; /* and the last output */
    const size_t notes = sides * up((size_t)2 * (size_t)ranks * NOTE, LINE), handles = sides * 2 * OUT * HANDLE;
    const size_t own     = up(in + gradient, ALLOCATION);
    const size_t offered = on_device ? up(places, ALLOCATION) : 0;
    const size_t shown   = up(notes + (on_device ? handles : places), ALLOCATION);

    return (fsdp_pipeline_info){.bytes = own + shown + offered, .device_bytes = on_device ? own + offered : 0};
}

/* Pinned memory is there where messages are staged: two places of each outbox and inbox. */
static void check_info(const place *p, int node_size)
{
    const int          ranks = fsdp_test_size(), rank = fsdp_test_rank(), sides = (rank > 0) + (rank + 1 < ranks);
    const int          near = node_size == 0 && (!is_on_device() || peers_share());
    fsdp_pipeline_info info;

    assert_int_equal(FSDP_OK, fsdp_pipeline_get_info(p->pipeline, &info));
    assert_int_equal(near || !is_on_device() || mpi_takes_it() ? 0 : up((size_t)sides * 4 * up(NET_BYTES, 64), 256),
                     info.pinned_bytes);
    if (near) {
        const fsdp_pipeline_info expected = expected_bytes(ranks, rank, is_on_device());

        assert_int_equal(ranks == 1 ? info.bytes : expected.bytes, info.bytes);
        assert_int_equal(ranks == 1 ? info.device_bytes : expected.device_bytes, info.device_bytes);
    }
    assert_int_equal(ranks - rank, info.most_held);
    assert_int_equal(0, info.most_owed);
}

static void check_held(const place *p, size_t device_before)
{
    size_t             on_device;
    fsdp_pipeline_info info;

    assert_int_equal(FSDP_OK, fsdp_pipeline_get_info(p->pipeline, &info));
    assert_int_equal(info.bytes, buffers_of(p->ctx, &on_device));
    assert_int_equal(info.device_bytes, on_device - device_before);
}

static void as_many_bytes_are_held_as_are_said_before(void **state)
{
    const int ranks = fsdp_test_size();

    (void)state;
    for (int node_size = 0; node_size < 2; node_size++) {
        place              p;
        const shape        o = {.schedule  = "1f1b",
                                .pipes     = 1,
                                .each      = 1,
                                .micros    = 2 * ranks,
                                .buffers   = 1,
                                .node_size = node_size,
                                .bare      = -1};
        fsdp_pipeline_info info;
        size_t             before, after;

        open_place(&p, &o);
        fsdp_pipeline_destroy(p.pipeline);
        assert_int_equal(0, buffers_of(p.ctx, &before));
        create_pipeline(&p, &o);
        check_info(&p, node_size);
        check_held(&p, before);
        step_and_compare(&p);
        check_held(&p, before);
        assert_int_equal(FSDP_OK, fsdp_pipeline_get_info(p.pipeline, &info));
        assert_int_equal(1, info.steps);
        assert_true(info.step_seconds > 0 && info.wait_seconds >= 0 && info.wait_seconds <= info.step_seconds);
        fsdp_pipeline_destroy(p.pipeline);
        p.pipeline = NULL;
        assert_int_equal(0, buffers_of(p.ctx, &after));
        assert_int_equal(before, after);
        close_place(&p);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_schedules_have_the_bits_of_one_rank),
        cmocka_unit_test(so_have_those_whose_messages_go_between_nodes),
        cmocka_unit_test(so_have_several_pipelines_beside_each_other),
        cmocka_unit_test(a_stage_without_parameters_is_one_like_others),
        cmocka_unit_test(schedules_come_as_text_too),
        cmocka_unit_test(messages_arrive_while_the_receiver_computes),
        cmocka_unit_test(as_many_bytes_are_held_as_are_said_before),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
