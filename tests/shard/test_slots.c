/*
 * Slots of gathered and gradient views: a chain of layers with a large unit open beside it and a tiny one at its end, as a
 * language model has them. What is gathered too late, or reduced too soon, is counted in order of issue, not in time.
 */
#include "shard/state/slots.h"

#include <stdio.h>

#include "fsdp/layout.h"
#include "fsdp/optimizer.h"
#include "tests/support/mpi_test.h"

enum { BLOCKS = 6, MOST_UNITS = BLOCKS + 2, EMBEDDING = 6000, BLOCK = 4000, NORM = 100, STEPS = 4 };

typedef struct chain {
    fsdp_context *ctx;
    fsdp_model   *model;
    fsdp_unit    *units[MOST_UNITS];
    size_t        sizes[MOST_UNITS], n;
    size_t        gathers, late; /* late: only when the unit is begun */
    size_t        reductions, hurried;
} chain;

static void open_chain(chain *c, int prefetch, int views_in_flight)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.prefetch        = prefetch;
    config.views_in_flight = views_in_flight;
    *c                     = (chain){0};
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &c->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(c->ctx, NULL, &c->model));
}

/* All elements of unit i are i + 1. */
static fsdp_unit *add_unit(chain *c, size_t elements)
{
    char        name[16];
    fsdp_tensor tensor = {.name   = name,
                          .n_dims = 1,
                          .shape  = {elements},
                          .dtype  = FSDP_F32,
                          .fill   = FSDP_FILL_CONSTANT,
                          .a      = (double)c->n + 1.0};

    (void)snprintf(name, sizeof name, "u%zu", c->n);
    assert_int_equal(FSDP_OK, fsdp_unit_add(c->model, name, &tensor, 1, &c->units[c->n]));
    c->sizes[c->n] = elements;
    return c->units[c->n++];
}

static void close_chain(chain *c)
{
    fsdp_model_destroy(c->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(c->ctx));
}

/* ---- overlap ----------------------------------------------------------------------------------------------------- */

static void note_gather(chain *c, const fsdp_unit *unit)
{
    const fsdpi_view *view = unit->members[0].view;

    c->late += !view->gathered && view->gathering == NULL;
    c->gathers += !view->gathered;
}

static void begin_forward(chain *c, fsdp_unit *unit)
{
    note_gather(c, unit);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
}

static void begin_backward(chain *c, fsdp_unit *unit)
{
    note_gather(c, unit);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
}

static void forward(chain *c, fsdp_unit *unit)
{
    begin_forward(c, unit);
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
}

/* Whether the reduction of the unit before had to be completed for this one. */
static void backward(chain *c, fsdp_unit *unit, const fsdp_unit *before)
{
    begin_backward(c, unit);
    c->reductions += before != NULL;
    c->hurried += before != NULL && before->members[0].bucket == NULL;
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
}

static void run_step(chain *c, fsdp_unit *open)
{
    const size_t first = open != NULL;

    c->gathers = c->late = c->reductions = c->hurried = 0;
    if (open != NULL) {
        begin_forward(c, open);
    }
    for (size_t u = first; u < c->n; u++) {
        forward(c, c->units[u]);
    }
    if (open != NULL) {
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(open));
        begin_backward(c, open);
    }
    for (size_t u = c->n; u-- > first;) {
        backward(c, c->units[u], u + 1 < c->n ? c->units[u + 1] : NULL);
    }
    if (open != NULL) {
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(open));
    }
}

static void train(chain *c, fsdp_unit *open)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(c->model, &o, &optimizer));
    for (int step = 0; step < STEPS; step++) {
        run_step(c, open);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    }
}

/* The last step of a chain with or without a large open unit and a tiny one. */
static void train_chain(chain *c, int prefetch, bool has_open, bool has_tiny)
{
    fsdp_unit *open;

    open_chain(c, prefetch, 2);
    open = has_open ? add_unit(c, EMBEDDING) : NULL;
    for (int i = 0; i < BLOCKS; i++) {
        (void)add_unit(c, BLOCK);
    }
    if (has_tiny) {
        (void)add_unit(c, NORM);
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(c->model));
    train(c, open);
    close_chain(c);
}

/* The first unit of a step cannot be gathered ahead: its parameters have just changed. */
static void only_the_first_gather_of_a_step_is_late(void **state)
{
    (void)state;
    for (int prefetch = 1; prefetch <= 3; prefetch++) {
        for (int shape = 0; shape < 4; shape++) {
            chain c;

            train_chain(&c, prefetch, shape & 1, shape >> 1);
            if (c.late != 1) {
                fail_msg("prefetch %d, %s, %s: %zu late gathers of %zu", prefetch,
                         shape & 1 ? "a unit open" : "none open", shape >> 1 ? "a tiny unit" : "none tiny", c.late,
                         c.gathers);
            }
            if (prefetch == 1 && shape == 3) {
                assert_int_equal(13, c.gathers); /* the tiny unit and the last block stay */
            }
        }
    }
}

static void a_reduction_has_the_time_of_the_next_unit(void **state)
{
    (void)state;
    for (int shape = 0; shape < 4; shape++) {
        chain c;

        train_chain(&c, 1, shape & 1, shape >> 1);
        assert_int_equal(BLOCKS - 1 + (shape >> 1), c.reductions);
        if (c.hurried != 0) {
            fail_msg("%s, %s: %zu of %zu reductions are waited for by the next unit",
                     shape & 1 ? "a unit open" : "none open", shape >> 1 ? "a tiny unit" : "none tiny", c.hurried,
                     c.reductions);
        }
    }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static size_t padded(size_t elements)
{
    fsdp_layout layout;

    assert_int_equal(FSDP_OK,
                     fsdp_layout_init(1, &elements, NULL, fsdp_test_size(), 16, FSDP_GRANULARITY_FLAT, &layout));
    return layout.padded;
}

static void expect_views(const chain *c, size_t views, size_t gradients)
{
    fsdp_budget budget;

    assert_int_equal(FSDP_OK, fsdp_model_budget(c->model, FSDP_FULL_SHARD, 0, FSDP_SGD, &budget));
    assert_int_equal(views * sizeof(float), budget.bytes[FSDP_MEMORY_GATHERED]);
    assert_int_equal(gradients * sizeof(float), budget.bytes[FSDP_MEMORY_GRADIENT_VIEWS]);
}

/* Two may be open: as large as the largest; three are gathered ahead: as large as the third to the fifth. */
static void slots_are_as_large_as_the_units_that_need_them(void **state)
{
    static const size_t sizes[] = {300, 5000, 10, 7000, 300, 4000, 1000};
    chain               c;

    (void)state;
    open_chain(&c, 3, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        (void)add_unit(&c, sizes[i]);
    }
    expect_views(&c, 2 * padded(7000) + padded(4000) + padded(1000) + padded(300), 2 * padded(7000) + padded(4000));
    close_chain(&c);
}

static void units_without_gradients_need_no_room_for_them(void **state)
{
    fsdp_tensor frozen = {
        .name = "frozen", .n_dims = 1, .shape = {BLOCK}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_FROZEN};
    chain c;

    (void)state;
    open_chain(&c, 1, 2);
    assert_int_equal(FSDP_OK, fsdp_unit_add(c.model, "frozen", &frozen, 1, &c.units[0]));
    (void)add_unit(&c, NORM);
    expect_views(&c, 2 * padded(BLOCK), padded(NORM));
    close_chain(&c);
}

/* ---- any order --------------------------------------------------------------------------------------------------- */

static void begin_and_check(chain *c, size_t u, bool is_backward)
{
    fsdp_unit *unit = c->units[u];

    assert_int_equal(FSDP_OK, is_backward ? fsdp_unit_begin_backward(unit) : fsdp_unit_begin_forward(unit));
    const float *w = fsdp_unit_param(unit, 0);
    float       *g = is_backward ? fsdp_unit_grad(unit, 0) : NULL;

    for (size_t i = 0; i < c->sizes[u]; i++) {
        assert_true(w[i] == (float)(u + 1));
        if (is_backward) {
            assert_true(g[i] == 0.0F);
            g[i] = (float)u;
        }
    }
}

/* What is written elsewhere meanwhile must not be seen here. */
static void check_and_end(chain *c, size_t u, bool is_backward)
{
    fsdp_unit   *unit = c->units[u];
    const float *w    = fsdp_unit_param(unit, 0);
    const float *g    = is_backward ? fsdp_unit_grad(unit, 0) : NULL;

    for (size_t i = 0; i < c->sizes[u]; i++) {
        assert_true(w[i] == (float)(u + 1));
        assert_true(!is_backward || g[i] == (float)u);
    }
    assert_int_equal(FSDP_OK, is_backward ? fsdp_unit_end_backward(unit) : fsdp_unit_end_forward(unit));
}

static void open_growing(chain *c, int prefetch, int views_in_flight)
{
    open_chain(c, prefetch, views_in_flight);
    for (size_t u = 0; u < MOST_UNITS; u++) {
        (void)add_unit(c, 100 * (u + 1));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(c->model));
}

/* Each is begun before the one before it is ended: the last unit that a slot is left to would be in the way of the next. */
static void units_may_be_passed_hand_over_hand(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch <= 2; prefetch++) {
        chain c;

        open_growing(&c, prefetch, 2);
        for (int pass = 0; pass < 4; pass++) {
            begin_and_check(&c, 0, pass % 2);
            for (size_t u = 1; u < c.n; u++) {
                begin_and_check(&c, u, pass % 2);
                check_and_end(&c, u - 1, pass % 2);
            }
            check_and_end(&c, c.n - 1, pass % 2);
        }
        close_chain(&c);
    }
}

/* A unit that is not open, from the counter on. */
static size_t draw_closed(const chain *c, unsigned *counter)
{
    size_t u;

    do {
        *counter = *counter * 1664525U + 1013904223U; /* Knuth's and Lewis's */
        u        = (*counter >> 16) % c->n;
    } while (c->units[u]->pass != FSDPI_CLOSED);
    return u;
}

static void units_may_come_in_any_order(void **state)
{
    enum { OPEN = 3 };

    (void)state;
    for (int prefetch = 0; prefetch <= 2; prefetch++) {
        size_t   open[OPEN];
        unsigned counter = 7;
        chain    c;

        open_growing(&c, prefetch, OPEN);
        for (size_t i = 0; i < 200; i++) { /* the one that is open for longest makes room */
            if (i >= OPEN) {
                check_and_end(&c, open[i % OPEN], i / OPEN % 2 == 0);
            }
            open[i % OPEN] = draw_closed(&c, &counter);
            begin_and_check(&c, open[i % OPEN], i / OPEN % 2);
        }
        close_chain(&c);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_first_gather_of_a_step_is_late),
        cmocka_unit_test(a_reduction_has_the_time_of_the_next_unit),
        cmocka_unit_test(slots_are_as_large_as_the_units_that_need_them),
        cmocka_unit_test(units_without_gradients_need_no_room_for_them),
        cmocka_unit_test(units_may_be_passed_hand_over_hand),
        cmocka_unit_test(units_may_come_in_any_order),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
