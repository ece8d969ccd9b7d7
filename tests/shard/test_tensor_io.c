/*
 * Whole tensors to and from one rank, against gathered views. Small staging cuts them into many pieces.
 */
#include <math.h>
#include <string.h>

#include "fsdp/optimizer.h"
#include "fsdp/tensor_io.h"
#include "lib/context/context.h"
#include "tests/shard/failing_memory.h"
#include "tests/shard/small_model.h"

static void for_every_strategy(void (*check)(small_model *m))
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.staging_bytes = 4096; /* the largest tensor takes three pieces on one rank */
    small_model_for_every_strategy(&config, check);
}

static size_t bytes_of(size_t tensor)
{
    return tensor_elements(tensor) * sizeof(float);
}

/* Only root passes a place, and only there anything is written, within its bounds. */
static void check_export(small_model *m)
{
    static float all[MOST_ELEMENTS], values[MOST_ELEMENTS + 2];

    for (int root = 0; root < fsdp_test_size(); root++) {
        const float *expected = all;

        run_pass(m, root); /* with gradients about, too */
        copy_parameters(m, all);
        for (size_t t = 0; t < N_TENSORS; t++) {
            const int    mine = fsdp_test_rank() == root;
            const size_t n    = tensor_elements(t);

            values[0] = values[n + 1] = 77.0F;
            assert_int_equal(FSDP_OK, fsdp_tensor_export(m->model, TENSORS[t].name, root, mine ? values + 1 : NULL,
                                                         mine ? bytes_of(t) : 0));
            if (mine) {
                assert_memory_equal(expected, values + 1, bytes_of(t));
                assert_true(values[0] == 77.0F && values[n + 1] == 77.0F);
            }
            expected += n;
        }
    }
}

/* On every rank at once, within its bounds. */
static void check_export_to_all(small_model *m)
{
    static float all[MOST_ELEMENTS], values[MOST_ELEMENTS + 2];
    const float *expected = all;

    run_pass(m, 3);
    copy_parameters(m, all);
    for (size_t t = 0; t < N_TENSORS; t++) {
        const size_t n = tensor_elements(t);

        values[0] = values[n + 1] = 77.0F;
        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(m->model, TENSORS[t].name, values + 1, bytes_of(t)));
        assert_memory_equal(expected, values + 1, bytes_of(t));
        assert_true(values[0] == 77.0F && values[n + 1] == 77.0F);
        expected += n;
    }
}

static void a_tensor_is_exported_to_all_ranks(void **state)
{
    (void)state;
    for_every_strategy(check_export_to_all);
}

/* On the last rank alone. */
static void a_wrong_place_on_one_rank_fails_on_all(void **state)
{
    const int    last = fsdp_test_rank() == fsdp_test_size() - 1;
    static float values[MOST_ELEMENTS];
    small_model  m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_tensor_export_to_all(m.model, TENSORS[0].name, last ? NULL : values, bytes_of(0)));
    assert_says(m.ctx, "are NULL on rank");
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_tensor_export_to_all(m.model, TENSORS[0].name, values, bytes_of(0) - (size_t)last));
    assert_says(m.ctx, "; it has");
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_tensor_export_to_all(m.model, last ? "no such" : TENSORS[0].name, values, bytes_of(0)));
    assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(m.model, TENSORS[0].name, values, bytes_of(0)));
    small_model_close(&m);
}

static void an_exported_tensor_equals_the_gathered_one_on_every_root(void **state)
{
    (void)state;
    for_every_strategy(check_export);
}

/* Values with their rounds and places in them, a NaN with a payload and a negative zero. */
static void fill_values(float *values, size_t n, size_t tensor, int root)
{
    const uint32_t nan = 0x7fc12345;

    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(i + 10000 * tensor) + 0.125F * (float)root;
    }
    values[n / 2] = -0.0F;
    memcpy(&values[n - 1], &nan, sizeof nan);
}

static void check_import(small_model *m)
{
    static float expected[MOST_ELEMENTS], found[MOST_ELEMENTS], values[MOST_ELEMENTS];

    copy_parameters(m, expected);
    for (int root = 0; root < fsdp_test_size(); root++) {
        size_t at = 0;

        for (size_t t = 0; t < N_TENSORS; t++) {
            const int    mine = fsdp_test_rank() == root;
            const size_t n    = tensor_elements(t);

            fill_values(values, n, t, root);
            memcpy(expected + at, values, bytes_of(t));
            assert_int_equal(FSDP_OK, fsdp_tensor_import(m->model, TENSORS[t].name, root, mine ? values : NULL,
                                                         mine ? bytes_of(t) : 0));
            copy_parameters(m, found); /* all other tensors are as they were */
            assert_memory_equal(expected, found, sizeof expected);
            at += n;
        }
    }
}

static void an_imported_tensor_is_seen_on_all_ranks_and_no_other_changes(void **state)
{
    (void)state;
    for_every_strategy(check_import);
}

static void check_round_trip(small_model *m)
{
    static float values[MOST_ELEMENTS];
    uint64_t     before, after;
    const int    from = fsdp_test_size() - 1;

    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &before));
    for (size_t t = 0; t < N_TENSORS; t++) {
        assert_int_equal(FSDP_OK, fsdp_tensor_export(m->model, TENSORS[t].name, from, values, bytes_of(t)));
        assert_int_equal(FSDP_OK, fsdp_tensor_import(m->model, TENSORS[t].name, from, values, bytes_of(t)));
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &after));
    assert_true(before == after);
}

static void what_was_exported_and_imported_again_has_the_same_bits(void **state)
{
    (void)state;
    for_every_strategy(check_round_trip);
}

static void check_errors(small_model *m)
{
    const int   size = fsdp_test_size(), last = size - 1, odd = fsdp_test_rank() == last;
    float       values[1009], kept[1009];
    const char *name = "c.weight";

    for (size_t i = 0; i < 1009; i++) {
        values[i] = kept[i] = 5.0F;
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_export(m->model, odd ? "no.such" : name, 0, values, sizeof values));
    assert_says(m->ctx, "the model has no tensor 'no.such'");
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_import(m->model, odd ? NULL : name, 0, values, sizeof values));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_export(m->model, name, odd ? size : 0, values, sizeof values));
    assert_says(m->ctx, "ranks are 0 to");
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_export(m->model, name, -1, values, sizeof values));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_export(m->model, name, last, values, sizeof values - 1));
    assert_says(m->ctx, "4035 bytes for tensor 'c.weight'; it has 4036");
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_import(m->model, name, last, values, sizeof values + 4));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_import(m->model, name, last, odd ? NULL : values, sizeof values));
    assert_says(m->ctx, "are NULL on rank");
    assert_int_equal(FSDP_ERR_ARG, fsdp_tensor_export(NULL, name, 0, values, sizeof values));
    if (size > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_tensor_export(m->model, name, odd ? 1 : 0, values, sizeof values));
        assert_int_equal(FSDP_ERR_MISMATCH,
                         fsdp_tensor_export(m->model, odd ? "b.gain" : name, 0, values, sizeof values));
        assert_says(m->ctx, "b.gain");
    }
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[1]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_tensor_import(m->model, name, 0, values, sizeof values));
    assert_says(m->ctx, "a forward pass of unit 'b' is open");
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[1]));
    assert_memory_equal(kept, values, sizeof kept);
    check_export(m);
}

static void bad_arguments_on_one_rank_fail_all_and_the_model_stays_good(void **state)
{
    (void)state;
    for_every_strategy(check_errors);
}

static void a_model_that_is_not_committed_has_no_values(void **state)
{
    small_model m;
    float       values[2];

    (void)state;
    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_tensor_export(m.model, "b.gain", 0, values, sizeof values));
    assert_says(m.ctx, "not committed");
    small_model_close(&m);
}

/* A model of one tensor of 2^18 elements, 1 MiB. */
static void open_large(small_model *m, const fsdp_config *config)
{
    fsdp_tensor tensor = {
        .name = "large", .n_dims = 1, .shape = {1 << 18}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 1};

    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, config, &m->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, NULL, &m->model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, "u", &tensor, 1, &m->units[0]));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

static void ranks_other_than_root_hold_one_piece_at_most(void **state)
{
    static float values[1 << 18];
    fsdp_config  config;
    fsdp_memory  before, after;
    small_model  m;

    (void)state;
    fsdp_config_init(&config);
    config.staging_bytes = 8192;
    open_large(&m, &config);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &before));
    assert_int_equal(FSDP_OK, fsdp_tensor_export(m.model, "large", 0, values, sizeof values));
    assert_int_equal(FSDP_OK, fsdp_tensor_import(m.model, "large", 0, values, sizeof values));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &after));
    assert_int_equal(before.current_total, after.current_total);
    assert_in_range(after.peak_total, before.current_total, before.current_total + 8192);
    small_model_close(&m);
}

static void a_rank_without_memory_for_a_piece_fails_all(void **state)
{
    fsdpi_device device = failing_device();
    static float values[1 << 18];
    small_model  m;

    (void)state;
    if (fsdp_test_size() == 1) {
        skip(); /* root takes no memory */
    }
    open_large(&m, NULL);
    m.ctx->device    = &device;
    allocations_left = fsdp_test_rank() == 1 ? 0 : ENOUGH_ALLOCATIONS;
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_tensor_export(m.model, "large", 0, values, sizeof values));
    allocations_left = ENOUGH_ALLOCATIONS;
    assert_int_equal(FSDP_OK, fsdp_tensor_export(m.model, "large", 0, values, sizeof values));
    m.ctx->device = &fsdpi_device_host;
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exported_tensor_equals_the_gathered_one_on_every_root),
        cmocka_unit_test(a_tensor_is_exported_to_all_ranks),
        cmocka_unit_test(a_wrong_place_on_one_rank_fails_on_all),
        cmocka_unit_test(an_imported_tensor_is_seen_on_all_ranks_and_no_other_changes),
        cmocka_unit_test(what_was_exported_and_imported_again_has_the_same_bits),
        cmocka_unit_test(bad_arguments_on_one_rank_fail_all_and_the_model_stays_good),
        cmocka_unit_test(a_model_that_is_not_committed_has_no_values),
        cmocka_unit_test(ranks_other_than_root_hold_one_piece_at_most),
        cmocka_unit_test(a_rank_without_memory_for_a_piece_fails_all),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
