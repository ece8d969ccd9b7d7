/**
 * @file
 * What goes wrong with pipelines is the same error on all ranks, without a hang, and after it the step can be repeated: callbacks that
 * fail, schedules that cannot be carried out or differ, options out of range, ranks that do not come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/pipeline/net.h"

typedef struct place {
    fsdp_context         *ctx;
    fsdp_pipeline        *pipeline;
    net                   n;
    fsdp_pipeline_options options;
} place;

static void begin(place *p, int node_size, int micros, int timeout_s)
{
    fsdp_config config;
    int         here[NET_STAGES];

    for (int s = 0; s < fsdp_test_size(); s++) {
        here[s] = s == fsdp_test_rank();
    }
    *p = (place){.options = FSDP_PIPELINE_OPTIONS_DEFAULT};
    fsdp_config_init(&config);
    config.node_size = node_size;
    if (timeout_s > 0) {
        config.timeout_s = timeout_s;
    }
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &p->ctx));
    net_open(&p->n, MPI_COMM_SELF, fsdp_test_size(), micros, -1, here, 0);
    p->options.micros       = micros;
    p->options.bytes        = NET_BYTES;
    p->options.output_bytes = NET_BYTES;
}

static fsdp_status create(place *p)
{
    fsdp_pipeline_callbacks callbacks = NET_CALLBACKS;

    callbacks.user = &p->n;
    return fsdp_pipeline_create(p->ctx, &p->options, &callbacks, &p->pipeline);
}

static void set_units(place *p)
{
    assert_int_equal(FSDP_OK, fsdp_pipeline_set_units(p->pipeline, fsdp_test_rank(), &p->n.units[fsdp_test_rank()], 1));
}

static void end(place *p)
{
    fsdp_pipeline_destroy(p->pipeline);
    net_close(&p->n);
    assert_int_equal(FSDP_OK, fsdp_finalize(p->ctx));
}

/* ---- callbacks ------------------------------------------------------------------------------------------------------------ */

/* Fails there, says so on all ranks, and does well when it is repeated. */
static void fail_at(place *p, net_callback callback, const char *name, int stage, int micro)
{
    char   words[120];
    double loss, expected;

    p->n.fails       = callback;
    p->n.fails_stage = stage;
    p->n.fails_micro = micro;
    assert_int_equal(FSDP_ERR_IO, fsdp_pipeline_step(p->pipeline, &loss));
    (void)snprintf(words, sizeof words, "callback `%s` returned %d (FSDP_ERR_IO) in stage %d with micro-batch %d", name,
                   (int)FSDP_ERR_IO, stage, micro);
    assert_says(p->ctx, words);
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(p->n.model, 1.0, NULL));
    assert_true(FSDP_OK != fsdp_pipeline_step(p->pipeline, &loss)); /* the models' step has failed */
    (void)fsdp_model_zero_grad(p->n.model);
    if (callback == NET_FORWARD || callback == NET_LOSS) {
        assert_int_equal(FSDP_ERR_IO, fsdp_pipeline_evaluate(p->pipeline, &loss));
        assert_says(p->ctx, "fsdp_pipeline_evaluate: the callback");
        (void)fsdp_model_zero_grad(p->n.model);
    }
    p->n.fails = NET_NONE;
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(p->pipeline, &loss));
    (void)fsdp_model_zero_grad(p->n.model);
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(p->pipeline, &expected));
    (void)fsdp_model_zero_grad(p->n.model);
    assert_memory_equal(&loss, &expected, sizeof loss);
}

static void fail_everywhere(place *p, int micros)
{
    const int last = fsdp_test_size() - 1;

    for (int stage = 0; stage <= last; stage++) {
        for (int micro = 0; micro < micros; micro += micros - 1) {
            fail_at(p, NET_FORWARD, "forward", stage, micro);
            fail_at(p, NET_BACKWARD_INPUT, "backward_input", stage, micro);
            fail_at(p, NET_BACKWARD_WEIGHT, "backward_weight", stage, micro);
        }
    }
    fail_at(p, NET_LOSS, "loss", last, 1);
}

static void a_callback_that_fails_fails_the_step_on_all_ranks(void **state)
{
    enum { MICROS = 3 };
    static const char *const SCHEDULES[] = {"1f1b", "zb-h1"};

    (void)state;
    for (int node_size = 0; node_size < 2; node_size++) {
        for (int k = 0; k < 2; k++) {
            place p;

            begin(&p, node_size, MICROS, 0);
            p.options.schedule = SCHEDULES[k];
            assert_int_equal(FSDP_OK, create(&p));
            set_units(&p);
            fsdp_test_capture_stderr();
            char text[64];
            fail_everywhere(&p, MICROS);
            fsdp_test_captured_stderr(text, sizeof text);
            end(&p);
        }
    }
}

/* ---- schedules ------------------------------------------------------------------------------------------------------------ */

static void refuse(place *p, fsdp_status status, const char *words)
{
    assert_int_equal(status, create(p));
    assert_null(p->pipeline);
    assert_says(p->ctx, words);
}

static void refuse_text(const char *text, const char *words)
{
    place p;

    begin(&p, 0, 0, 0);
    p.options.text = text;
    refuse(&p, FSDP_ERR_ARG, words);
    p.options.text   = NULL;
    p.options.micros = 2;
    assert_int_equal(FSDP_OK, create(&p)); /* the context is still good */
    end(&p);
}

/* The texts are for two ranks. */
static void what_cannot_be_carried_out_is_refused_with_its_place(void **state)
{
    (void)state;
    if (fsdp_test_size() != 2) {
        return;
    }
    refuse_text("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n", "there is no 1RECV_F0");
    refuse_text("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n", "0F0 >0SEND_F0< 0RECV_B0"); /* in the grid */
    refuse_text("0RECV_B0,0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "each of these waits for the next");
    refuse_text("0F0,0B0,1F0\n1F0,1B0\n", "a stage is on one rank");
    refuse_text("0F0,0F0,0B0\n1F0,1B0\n", "there twice");
    refuse_text("0F0,0F1,0B0,0B1\n1F0,1B0\n", "1F1 is missing");
    refuse_text("0F0,0B0\n2F0,2B0\n", "stage 1 is on no rank");
    refuse_text("0F0,0B0\n1F0,1Q0\n", "'1Q0' is no action");
    refuse_text("\n\n", "no forward or backward pass");
    refuse_text("", "is empty");
    refuse_text("0F0,0B0\n", "has lines for 1 ranks, and the pipeline has 2");
}

static void change_name(place *p)
{
    p->options.schedule = "2f2b";
}

static void change_micros(place *p)
{
    p->options.micros = 0;
}

static void change_interleaving(place *p)
{
    p->options.schedule        = "interleaved";
    p->options.stages_per_rank = 2;
    p->options.micros          = 2 * fsdp_test_size() + 1;
}

static void change_stages(place *p)
{
    p->options.stages_per_rank = 0;
}

static void change_batch(place *p)
{
    p->options.micros = 3;
    p->options.batch  = 10;
}

static void change_bytes(place *p)
{
    p->options.bytes = 0;
}

static void change_buffers(place *p)
{
    p->options.buffers = 0;
}

static void change_held(place *p)
{
    p->options.micros    = 4;
    p->options.schedule  = "gpipe";
    p->options.most_held = 3;
}

static void change_limit(place *p)
{
    p->options.memory_limit = 100;
}

static void change_file(place *p)
{
    p->options.file = "/nowhere/schedule.csv";
}

static void change_both(place *p)
{
    p->options.file = "/nowhere/schedule.csv";
    p->options.text = "0F0,0B0";
}

static void options_out_of_range_are_named_before_anything_is_allocated(void **state)
{
    static const struct {
        void (*change)(place *p);
        fsdp_status status;
        const char *words;
        int         ranks; /* at least */
    } ROWS[] = {{change_name, FSDP_ERR_ARG, "there is no schedule '2f2b'", 1},
                {change_micros, FSDP_ERR_ARG, "0 micro-batches", 1},
                {change_interleaving, FSDP_ERR_ARG, "needs a multiple of the", 2},
                {change_stages, FSDP_ERR_ARG, "0 stages each", 1},
                {change_batch, FSDP_ERR_ARG, "a batch of 10 samples and 3 micro-batches", 1},
                {change_bytes, FSDP_ERR_ARG, "stage 0 passes 0 bytes on", 2},
                {change_buffers, FSDP_ERR_ARG, "buffers is 0", 1},
                {change_held, FSDP_ERR_ARG, "the limit is 3", 1},
                {change_limit, FSDP_ERR_ARG, "and the limit is 100", 1},
                {change_file, FSDP_ERR_IO, "/nowhere/schedule.csv cannot be opened", 1},
                {change_both, FSDP_ERR_ARG, "as a file and as text", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        place       p;
        fsdp_memory memory;

        if (fsdp_test_size() < ROWS[i].ranks) {
            continue;
        }
        begin(&p, 0, 2, 0);
        ROWS[i].change(&p);
        refuse(&p, ROWS[i].status, ROWS[i].words);
        assert_int_equal(FSDP_OK, fsdp_memory_usage(p.ctx, &memory));
        assert_int_equal(0, memory.current[FSDP_MEMORY_BUFFERS]);
        end(&p);
    }
}

static void one_rank_with_another_schedule_is_a_mismatch_on_all(void **state)
{
    (void)state;
    for (int what = 0; what < 4 && fsdp_test_size() > 1; what++) {
        const int odd = fsdp_test_rank() == 1;
        place     p;

        begin(&p, 0, 4, 0);
        p.options.schedule = what == 0 && odd ? "gpipe" : "1f1b";
        p.options.micros   = what == 1 && odd ? 5 : 4;
        p.options.bytes    = what == 2 && odd ? 2 * NET_BYTES : NET_BYTES;
        p.options.buffers  = what == 3 && odd ? 2 : 1;
        refuse(&p, FSDP_ERR_MISMATCH, "fsdp_pipeline_create");
        end(&p);
    }
}

static void what_one_rank_finds_all_are_told(void **state)
{
    place p;

    (void)state;
    begin(&p, 0, 2, 0);
    if (fsdp_test_rank() == fsdp_test_size() - 1) {
        p.options.file = "/nowhere/schedule.csv";
    }
    refuse(&p, FSDP_ERR_IO, "cannot be opened");
    end(&p);
}

static void callbacks_are_needed(void **state)
{
    fsdp_pipeline_callbacks callbacks = NET_CALLBACKS;
    place                   p;

    (void)state;
    begin(&p, 0, 2, 0);
    callbacks.loss = NULL;
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_create(p.ctx, &p.options, &callbacks, &p.pipeline));
    assert_says(p.ctx, "`loss` is NULL");
    callbacks                 = NET_CALLBACKS;
    callbacks.backward_weight = NULL;
    p.options.schedule        = "zb-h1";
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_create(p.ctx, &p.options, &callbacks, &p.pipeline));
    assert_says(p.ctx, "`backward_weight` is NULL");
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_create(p.ctx, &p.options, NULL, &p.pipeline));
    end(&p);
}

/* ---- units ---------------------------------------------------------------------------------------------------------------- */

static void units_must_be_named_once_and_where_their_stage_is(void **state)
{
    const int rank = fsdp_test_rank(), other = (rank + 1) % fsdp_test_size();
    place     p;

    (void)state;
    begin(&p, 0, 2, 0);
    assert_int_equal(FSDP_OK, create(&p));
    fsdp_unit *twice[] = {p.n.units[rank], p.n.units[rank]};
    if (rank == 0) {
        assert_int_equal(FSDP_OK, fsdp_pipeline_set_units(p.pipeline, rank, twice, 1));
    }
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_STATE, fsdp_pipeline_step(p.pipeline, NULL));
        assert_says(p.ctx, "the units of stage 1 are not named");
        assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_set_units(p.pipeline, other, twice, 1));
        assert_says(p.ctx, "name its units there");
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_set_units(p.pipeline, fsdp_test_size(), twice, 1));
    assert_says(p.ctx, "there is no stage");
    if (rank > 0) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_set_units(p.pipeline, rank, twice, 2));
        assert_says(p.ctx, "is there twice");
        assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_set_units(p.pipeline, rank, NULL, 1));
        assert_int_equal(FSDP_OK, fsdp_pipeline_set_units(p.pipeline, rank, twice, 1));
    }
    assert_int_equal(FSDP_ERR_STATE, fsdp_pipeline_set_units(p.pipeline, rank, twice, 1));
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(p.pipeline, NULL));
    assert_int_equal(FSDP_ERR_STATE, fsdp_pipeline_set_units(p.pipeline, rank, twice, 1));
    end(&p);
}

static void nothing_is_refused_for_good(void **state)
{
    fsdp_pipeline_info info;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_step(NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_evaluate(NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_set_units(NULL, 0, NULL, 0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_pipeline_get_info(NULL, &info));
    assert_int_equal(-1, fsdp_pipeline_rank_of_stage(NULL, 0));
    fsdp_pipeline_destroy(NULL);
}

/* ---- ranks that do not come ------------------------------------------------------------------------------------------------ */

/* The rank of the last stage is late; the first waits for it at a receive, and gives up. */
static void a_rank_that_is_late_is_a_time_out_that_names_the_action(void **state)
{
    place p;

    (void)state;
    if (fsdp_test_size() < 2) {
        return;
    }
    begin(&p, 0, 2, 1);
    assert_int_equal(FSDP_OK, create(&p));
    set_units(&p);
    p.n.fails       = NET_FORWARD;
    p.n.fails_stage = fsdp_test_size() - 1;
    p.n.fails_micro = 0;
    p.n.naps        = 3;
    fsdp_test_capture_stderr();
    char              text[64];
    const fsdp_status status = fsdp_pipeline_step(p.pipeline, NULL);
    fsdp_test_captured_stderr(text, sizeof text);
    assert_true(status == FSDP_ERR_TIMEOUT);
    if (fsdp_test_rank() == 0) {
        assert_says(p.ctx, "at 0RECV_B0 of step 1");
    }
    fsdp_pipeline_destroy(p.pipeline);
    net_close(&p.n);
    assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(p.ctx));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_that_fails_fails_the_step_on_all_ranks),
        cmocka_unit_test(what_cannot_be_carried_out_is_refused_with_its_place),
        cmocka_unit_test(options_out_of_range_are_named_before_anything_is_allocated),
        cmocka_unit_test(one_rank_with_another_schedule_is_a_mismatch_on_all),
        cmocka_unit_test(what_one_rank_finds_all_are_told),
        cmocka_unit_test(callbacks_are_needed),
        cmocka_unit_test(units_must_be_named_once_and_where_their_stage_is),
        cmocka_unit_test(nothing_is_refused_for_good),
        cmocka_unit_test(a_rank_that_is_late_is_a_time_out_that_names_the_action),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
