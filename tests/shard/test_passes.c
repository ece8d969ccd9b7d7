/*
 * Passes in other orders than one forward and one backward pass of each unit: evaluation, uneven batches, recomputation,
 * nested units and units that are used twice. All is held to a serial recomputation, and a trace tells what is gathered.
 *
 * Passes are written as words: "fa" is a forward and "ba" a backward pass of unit a; "+a" and "-a" begin and end a forward
 * pass, "<a" and ">a" a backward pass, within which others lie.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsdp/optimizer.h"
#include "tests/shard/serial_optimizer.h"
#include "tests/shard/trace_file.h"

enum { STEPS = 3, MOST_PREFETCH = 2 };

typedef struct training {
    const char *passes;     /* of a step */
    const char *evaluation; /* behind it; NULL: none */
    int         uneven;     /* ranks have another number of samples each, and some have none */
} training;

typedef struct run {
    small_model     m;
    serial_model    serial;
    const training *t;
    int             step, use; /* backward passes since the step */
} run;

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static int samples_of(const run *r, int rank)
{
    return r->t->uneven ? (rank + r->step) % 3 : 1;
}

static int sample_number(const run *r, int i)
{
    return (r->step * 16 + r->use) * 4 + i;
}

static float gradient_of(const run *r, int rank, size_t t, size_t i, float w)
{
    float sum = 0.0F;

    for (int s = 0; s < samples_of(r, rank); s++) {
        sum += gradient_element(rank, sample_number(r, s), t, i, w);
    }
    return sum;
}

/* ELEMENTS before a tensor. */
static size_t offset_of(size_t tensor)
{
    size_t n = 0;

    for (size_t t = 0; t < tensor; t++) {
        n += tensor_elements(t);
    }
    return n;
}

static void serial_backward(run *r, size_t u)
{
    const int size = fsdp_size(r->m.ctx);

    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        for (size_t i = 0; i < tensor_elements(t); i++) {
            const size_t k   = offset_of(t) + i;
            float        sum = gradient_of(r, 0, t, i, r->serial.w[k]);

            for (int rank = 1; rank < size; rank++) {
                sum += gradient_of(r, rank, t, i, r->serial.w[k]);
            }
            r->serial.g[k] += sum / (float)size;
        }
    }
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void assert_gathered(run *r, size_t u)
{
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        assert_memory_equal(fsdp_unit_param(r->m.units[u], t - FIRST_TENSOR[u]), r->serial.w + offset_of(t),
                            tensor_elements(t) * sizeof(float));
    }
}

static void begin_backward(run *r, size_t u)
{
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(r->m.units[u]));
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        const float *w = fsdp_unit_param(r->m.units[u], t - FIRST_TENSOR[u]);
        float       *g = fsdp_unit_grad(r->m.units[u], t - FIRST_TENSOR[u]);

        for (size_t i = 0; i < tensor_elements(t); i++) {
            assert_true(g[i] == 0.0F);
            if (samples_of(r, fsdp_rank(r->m.ctx)) > 0) {
                g[i] += gradient_of(r, fsdp_rank(r->m.ctx), t, i, w[i]);
            }
        }
    }
    serial_backward(r, u);
    r->use++;
}

static void end_backward(run *r, size_t u)
{
    assert_gathered(r, u);
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(r->m.units[u]));
}

static void begin_forward(run *r, size_t u)
{
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(r->m.units[u]));
    assert_gathered(r, u);
}

static void end_forward(run *r, size_t u)
{
    assert_gathered(r, u);
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(r->m.units[u]));
}

static void run_word(run *r, char what, size_t u)
{
    if (what == 'f' || what == '+') {
        begin_forward(r, u);
    }
    if (what == 'f' || what == '-') {
        end_forward(r, u);
    }
    if (what == 'b' || what == '<') {
        begin_backward(r, u);
    }
    if (what == 'b' || what == '>') {
        end_backward(r, u);
    }
}

static void run_words(run *r, const char *words)
{
    for (; words[0] != '\0'; words += words[2] == ' ' ? 3 : 2) {
        run_word(r, words[0], (size_t)(words[1] - 'a'));
    }
}

static void train(run *r, const training *t)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    r->t      = t;
    r->serial = (serial_model){.fresh = 1};
    copy_parameters(&r->m, r->serial.w);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    o.lr = 0.01;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r->m.model, &o, &optimizer));
    for (r->step = 0; r->step < STEPS; r->step++) {
        r->use = 0;
        memset(r->serial.g, 0, sizeof r->serial.g);
        run_words(r, t->passes);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        serial_step(&r->serial, &o, NULL);
        run_words(r, t->evaluation != NULL ? t->evaluation : "");
    }
    assert_equal_parameters(&r->serial, &r->m, STEPS);
    fsdp_optimizer_destroy(optimizer);
}

/* Sums of the serial side are those of one node. */
static void open_config(fsdp_config *config, int prefetch)
{
    fsdp_config_init(config);
    config->prefetch  = prefetch;
    config->node_size = 0;
}

static void check_strategies(fsdp_context *ctx, const training *t)
{
    static run r;

    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

        options.strategy = (fsdp_strategy)strategy;
        options.seed     = 7;
        small_model_create(&r.m, ctx, &options);
        assert_int_equal(FSDP_OK, fsdp_model_commit(r.m.model));
        train(&r, t);
        fsdp_model_destroy(r.m.model);
    }
}

static fsdp_context *contexts[MOST_PREFETCH + 1]; /* by prefetch */

static void check(training t)
{
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        if (fsdp_node_count(contexts[prefetch]) == 1) {
            check_strategies(contexts[prefetch], &t);
        }
    }
}

/* ---- what is computed -------------------------------------------------------------------------------------------- */

static void evaluation_changes_nothing(void **state)
{
    (void)state;
    check((training){.passes = "fa fb fc bc bb ba", .evaluation = "fa fb fc fa fb fc"});
    check((training){.passes = "fa fb fc bc bb ba", .evaluation = "fa fc"});
    check((training){.passes = "fa fb fc fb fa bc bb fc ba"}); /* before gradients are complete */
}

static void ranks_may_have_fewer_samples_than_others_or_none(void **state)
{
    (void)state;
    check((training){.passes = "fa fb fc bc bb ba", .uneven = 1});
}

static void units_are_recomputed_within_backward_passes(void **state)
{
    (void)state;
    check((training){.passes = "fa fb fc fb fc bc bb fa ba"});
    check((training){.passes = "fa fb fc <c fa fb >c <b fa >b ba"});
}

static void units_lie_in_one_another(void **state)
{
    (void)state;
    check((training){.passes = "+a fb fc -a <a bc bb >a"});
    check((training){.passes = "+a fb +c -a -c <c <b >c ba >b"}); /* ended in another order */
}

static void gradients_of_a_unit_that_is_used_twice_add_up(void **state)
{
    (void)state;
    check((training){.passes = "fa fb fa fc bc ba bb ba"});
    check((training){.passes = "fb +a fb fc -a <a bc bb >a bb"});
    check((training){.passes = "+a fb -a fb fc bc bb <a bb >a"});
    check((training){.passes = "fa fb fc bc bb ba fa fb fc bc bb ba"});
}

/* ---- what is gathered -------------------------------------------------------------------------------------------- */

static char folder[] = "passes-XXXXXX";

static void read_run(run *r, traced *trace)
{
    static int number;
    char       name[96], tail[16] = "";
    const int  rank = fsdp_rank(r->m.ctx);

    small_model_close(&r->m);
    if (number > 0) {
        (void)snprintf(tail, sizeof tail, ".%d", number);
    }
    number++;
    (void)snprintf(name, sizeof name, "%s/t.%d%s.json", folder, rank, tail);
    read_trace(name, trace);
    assert_int_equal(0, unlink(name));
}

/* Whether an event lies where `e` waits for its parameters. */
static int is_waited_for(const event *gather, const event *e)
{
    return strncmp(e->name, "gather ", 7) == 0 && strcmp(e->name + 7, gather->name + strlen("allgather ")) == 0 &&
           gather->issued >= e->begin && gather->issued <= e->begin + e->length;
}

typedef struct gathers {
    size_t all, late; /* late: only when the unit is begun */
} gathers;

static gathers count_gathers(const traced *trace, double from)
{
    gathers n = {0, 0};

    for (size_t i = 0; i < trace->n; i++) {
        const event *gather = &trace->events[i];

        if (strncmp(gather->name, "allgather ", 10) == 0 && gather->issued >= from) {
            n.all++;
            for (size_t k = 0; k < trace->n; k++) {
                n.late += (size_t)is_waited_for(gather, &trace->events[k]);
            }
        }
    }
    return n;
}

/* In the last step, which begins unit a so often. */
static gathers of_the_last_step(const traced *trace, size_t begins)
{
    size_t i = trace->n;

    while (begins > 0) {
        assert_true(i-- > 0);
        begins -= strcmp(trace->events[i].name, "gather a") == 0;
    }
    return count_gathers(trace, trace->events[i].begin);
}

static gathers gathered_in(const char *passes, int prefetch, size_t begins)
{
    static run             r;
    static traced          trace;
    char                   prefix[64];
    fsdp_config            config;
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    open_config(&config, prefetch);
    (void)snprintf(prefix, sizeof prefix, "%s/t", folder);
    config.trace = prefix;
    small_model_open(&r.m, &config, FSDP_FULL_SHARD);
    r.t      = &(training){.passes = passes};
    r.serial = (serial_model){.fresh = 1};
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    o.lr = 0.0; /* what is gathered is looked at, not what is learnt */
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r.m.model, &o, &optimizer));
    copy_parameters(&r.m, r.serial.w);
    for (r.step = 0; r.step < STEPS; r.step++) {
        r.use = 0;
        run_words(&r, passes);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    }
    read_run(&r, &trace);
    return of_the_last_step(&trace, begins);
}

static void assert_gathers(const char *passes, int prefetch, size_t begins, gathers expected)
{
    const gathers found = gathered_in(passes, prefetch, begins);

    if (found.all != expected.all || found.late != expected.late) {
        fail_msg("'%s', prefetch %d: %zu gathers, %zu of them late, instead of %zu and %zu", passes, prefetch,
                 found.all, found.late, expected.all, expected.late);
    }
}

/* A step begins with a unit that nobody could gather ahead: its parameters have just changed. Every backward pass reads its
 * unit again, as a recomputation does, which gathers nothing. Nothing is gathered for the next step. */
static void what_comes_next_is_known_wherever_a_unit_comes_again(void **state)
{
    (void)state;
    assert_gathers("fa fb fc bc bb ba", 0, 2, (gathers){6, 6});
    assert_gathers("fa fb fc bc bb ba", 1, 2, (gathers){4, 1});
    assert_gathers("fa fb fc bc bb ba", 2, 2, (gathers){3, 1});
    assert_gathers("fa fb fc fb fc bc bb fa ba", 1, 3, (gathers){4, 1});
    assert_gathers("+a fb fc -a <a bc bb >a", 1, 2, (gathers){3, 1});
    assert_gathers("+a fb fc -a <a bc bb >a", 2, 2, (gathers){3, 1});
    assert_gathers("fa fb fa fc bc ba bb ba", 1, 4, (gathers){4, 1});
}

static int open_all(void **state)
{
    int failed = mkdtemp(folder) == NULL;

    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        fsdp_config config;

        open_config(&config, prefetch);
        failed |= fsdp_init(MPI_COMM_WORLD, &config, &contexts[prefetch]) != FSDP_OK;
    }
    return failed;
}

static int close_all(void **state)
{
    int failed = rmdir(folder) != 0;

    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        failed |= fsdp_finalize(contexts[prefetch]) != FSDP_OK;
    }
    return failed;
}

static const struct CMUnitTest passes[] = {
    cmocka_unit_test(evaluation_changes_nothing),
    cmocka_unit_test(ranks_may_have_fewer_samples_than_others_or_none),
    cmocka_unit_test(units_are_recomputed_within_backward_passes),
    cmocka_unit_test(units_lie_in_one_another),
    cmocka_unit_test(gradients_of_a_unit_that_is_used_twice_add_up),
    cmocka_unit_test(what_comes_next_is_known_wherever_a_unit_comes_again),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, passes, open_all, close_all);
}
