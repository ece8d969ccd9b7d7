#include <string.h>

#include "fsdp/grouping.h"
#include "shard/state/model.h"
#include "tests/support/mpi_test.h"

enum { MOST = 16 };

/* Vectors of these many elements. */
static void check_by_size(const size_t *counts, size_t n, size_t least, const size_t *expected, size_t n_expected)
{
    fsdp_tensor tensors[MOST] = {{0}};
    size_t      first[MOST], n_groups = 99;

    for (size_t i = 0; i < n; i++) {
        tensors[i] = (fsdp_tensor){.n_dims = 1, .shape = {counts[i]}};
    }
    assert_int_equal(FSDP_OK, fsdp_group_by_size(tensors, n, least, first, &n_groups));
    assert_int_equal(n_expected, n_groups);
    assert_memory_equal(expected, first, n_groups * sizeof *first);
}

static void tensors_are_collected_until_they_are_large_enough(void **state)
{
    const size_t counts[] = {60, 40, 10, 200, 99, 1, 1, 5};
    const size_t by_100[] = {0, 2, 4, 6}, by_1[] = {0, 1, 2, 3, 4, 5, 6, 7}, by_all[] = {0}, by_101[] = {0, 3, 4, 7};

    (void)state;
    check_by_size(counts, 8, 100, by_100, 4); /* the last two, 6 elements, are what is left */
    check_by_size(counts, 8, 1, by_1, 8);
    check_by_size(counts, 8, 0, by_1, 8);
    check_by_size(counts, 8, 416, by_all, 1);
    check_by_size(counts, 8, SIZE_MAX, by_all, 1);
    check_by_size(counts, 8, 101, by_101, 4);
    check_by_size(counts, 0, 100, by_all, 0);
}

static void sizes_that_overflow_count_as_large(void **state)
{
    const fsdp_tensor tensors[] = {{.n_dims = 2, .shape = {SIZE_MAX, 3}},
                                   {.n_dims = 0},
                                   {.n_dims = 1, .shape = {SIZE_MAX - 1}},
                                   {.n_dims = 1, .shape = {9}}};
    size_t            first[4], n;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_group_by_size(tensors, 4, SIZE_MAX, first, &n));
    assert_int_equal(3, n);
    assert_int_equal(1, first[1]);
    assert_int_equal(3, first[2]); /* 1 + (SIZE_MAX - 1) elements are just enough */
    assert_int_equal(FSDP_OK, fsdp_group_by_size(tensors + 2, 2, SIZE_MAX, first, &n));
    assert_int_equal(1, n);
}

static void check_by_name(const char *const *names, size_t n, const char *pattern, const size_t *expected,
                          size_t n_expected)
{
    fsdp_tensor tensors[MOST] = {{0}};
    size_t      first[MOST], n_groups = 99;

    for (size_t i = 0; i < n; i++) {
        tensors[i].name = names[i];
    }
    assert_int_equal(FSDP_OK, fsdp_group_by_name(tensors, n, pattern, first, &n_groups));
    if (n_groups != n_expected || memcmp(expected, first, n_groups * sizeof *first) != 0) {
        fail_msg("'%s' makes %zu groups, or others", pattern, n_groups);
    }
}

static void names_with_the_same_instance_of_the_pattern_are_collected(void **state)
{
    static const char *const names[]  = {"wte",   "wpe", "h.0.a", "h.0.b",  "h.1.a", "h.10.a",
                                         "h.1.c", "h.",  "h..a",  "hx.1.a", "ln_f"};
    const size_t             layers[] = {0, 2, 4, 5, 6, 7}, components[] = {0, 2, 4, 5, 6, 7}, tops[] = {0, 2, 9, 10};
    const size_t             all[] = {0}, literal[] = {0, 4, 5, 6, 7}, tensors[] = {0, 2, 3, 4, 5, 6, 7};

    (void)state;
    check_by_name(names, 11, "h.*.", layers, 6);    /* "h.", "h..a" and the rest do not match */
    check_by_name(names, 11, "h.*", components, 6); /* the same here */
    check_by_name(names, 11, "h.*.*", tensors, 7);  /* one tensor each */
    check_by_name(names, 11, "*.", tops, 4);        /* h., hx. */
    check_by_name(names, 11, "h.1.", literal, 5);   /* only these; h.10.a does not begin with it */
    check_by_name(names, 11, "nowhere.*.", all, 1); /* nothing matches: one group of the rest */
    check_by_name(names, 0, "h.*.", all, 0);
}

static void patterns_and_lists_that_make_no_sense_are_refused(void **state)
{
    const fsdp_tensor tensors[] = {{.name = "a"}, {.name = NULL}, {.name = "b", .n_dims = 9}};
    size_t            first[3], n;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(tensors, 1, "", first, &n));
    assert_says(NULL, "the pattern is empty");
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(tensors, 1, NULL, first, &n));
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(tensors, 1, "h.*x.", first, &n));
    assert_says(NULL, "followed by 'x'");
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(tensors, 1, "**", first, &n));
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(tensors, 2, "h.*.", first, &n));
    assert_says(NULL, "tensor 1 has no name");
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(NULL, 2, "h.*.", first, &n));
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_name(tensors, 1, "h.*.", NULL, &n));
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_size(tensors, 3, 1, first, &n));
    assert_says(NULL, "tensor 2 has 9 dimensions");
    assert_int_equal(FSDP_ERR_ARG, fsdp_group_by_size(tensors, 1, 1, first, NULL));
}

static fsdp_model *open_model(fsdp_context *ctx)
{
    fsdp_model *model;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    return model;
}

static void set_names(fsdp_tensor *tensors, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tensors[i] = (fsdp_tensor){.name = names[i], .n_dims = 1, .shape = {10 + i}, .dtype = FSDP_F32};
    }
}

static void units_have_the_tensors_of_their_groups_and_names_of_their_own(void **state)
{
    static const char *const names[]    = {"wte.w",   "wpe.w",   "h.0.a.w", "h.0.b.w", "h.1.a.w",
                                           "h.1.b.w", "h.1.b.x", "h.1",     "m.1.w",   "m.10.w"};
    static const char *const expected[] = {"wte.w", "h.0", "h.1.a.w", "h.1.b.x", "m.1", "m.10"};
    const size_t             first[]    = {0, 2, 4, 6, 8, 9};
    fsdp_context            *ctx        = *state;
    fsdp_model              *model      = open_model(ctx);
    fsdp_tensor              tensors[MOST];
    fsdp_unit               *units[6];

    set_names(tensors, names, 10);
    assert_int_equal(FSDP_OK, fsdp_units_add_grouped(model, tensors, 10, first, 6, units));
    for (size_t g = 0; g < 6; g++) {
        const size_t end = g < 5 ? first[g + 1] : 10;

        assert_string_equal(expected[g], fsdp_unit_name(units[g]));
        assert_int_equal(end - first[g], units[g]->n_tensors);
        for (size_t i = first[g]; i < end; i++) {
            assert_string_equal(names[i], units[g]->tensors[i - first[g]].name);
            assert_int_equal(10 + i, units[g]->tensors[i - first[g]].count);
        }
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    fsdp_model_destroy(model);
}

static void both_ways_of_grouping_make_a_model(void **state)
{
    static const char *const names[] = {"wte", "h.0.a", "h.0.b", "h.1.a", "h.1.b", "ln_f"};
    fsdp_context            *ctx     = *state;
    fsdp_tensor              tensors[MOST];
    fsdp_unit               *units[6];
    uint64_t                 hash[2];
    size_t                   first[6], n;

    set_names(tensors, names, 6);
    for (int way = 0; way < 2; way++) {
        fsdp_model *model = open_model(ctx);

        assert_int_equal(FSDP_OK, way == 0 ? fsdp_group_by_name(tensors, 6, "h.*.", first, &n)
                                           : fsdp_group_by_size(tensors, 6, 30, first, &n));
        assert_int_equal(way == 0 ? 4 : 2, n);
        assert_int_equal(FSDP_OK, fsdp_units_add_grouped(model, tensors, 6, first, n, units));
        assert_string_equal(way == 0 ? "h.1" : "h.1.a", fsdp_unit_name(units[way == 0 ? 2 : 1]));
        assert_int_equal(FSDP_OK, fsdp_model_commit(model));
        assert_int_equal(FSDP_OK, fsdp_model_hash(model, &hash[way]));
        fsdp_model_destroy(model);
    }
    assert_true(hash[0] == hash[1]); /* values belong to the tensors, however they are grouped */
}

static void check_groups(fsdp_context *ctx, const size_t *first, size_t n_groups, const char *words)
{
    static const char *const names[] = {"a", "b", "c"};
    fsdp_model              *model   = open_model(ctx);
    fsdp_tensor              tensors[MOST];
    fsdp_unit               *units[4];

    set_names(tensors, names, 3);
    assert_int_equal(FSDP_ERR_ARG, fsdp_units_add_grouped(model, tensors, 3, first, n_groups, units));
    assert_says(ctx, words);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(model));
    assert_says(ctx, words);
    fsdp_model_destroy(model);
}

static void groups_that_are_none_fail_the_commit_too(void **state)
{
    check_groups(*state, (const size_t[]){1}, 1, "group 0 begins with tensor 1 of 3");
    check_groups(*state, (const size_t[]){0, 2, 2}, 3, "group 2 begins with tensor 2");
    check_groups(*state, (const size_t[]){0, 3}, 2, "group 1 begins with tensor 3 of 3");
    check_groups(*state, (const size_t[]){0, SIZE_MAX}, 2, "group 1 begins");
    check_groups(*state, (const size_t[]){0}, 0, "0 groups");
    check_groups(*state, NULL, 1, "a NULL pointer");
    assert_int_equal(FSDP_ERR_ARG, fsdp_units_add_grouped(NULL, NULL, 0, NULL, 0, NULL));
}

static void a_rank_that_grouped_otherwise_fails_the_commit_of_all(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    fsdp_context            *ctx     = *state;
    const int                last    = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    fsdp_model              *model   = open_model(ctx);
    fsdp_tensor              tensors[MOST];
    fsdp_unit               *units[3];
    const size_t             first[] = {last ? 1 : 0};

    set_names(tensors, names, 3);
    assert_int_equal(last ? FSDP_ERR_ARG : FSDP_OK, fsdp_units_add_grouped(model, tensors, 3, first, 1, units));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(model));
    assert_says(ctx, "group 0 begins with tensor 1");
    fsdp_model_destroy(model);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_collected_until_they_are_large_enough),
        cmocka_unit_test(sizes_that_overflow_count_as_large),
        cmocka_unit_test(names_with_the_same_instance_of_the_pattern_are_collected),
        cmocka_unit_test(patterns_and_lists_that_make_no_sense_are_refused),
        cmocka_unit_test(units_have_the_tensors_of_their_groups_and_names_of_their_own),
        cmocka_unit_test(both_ways_of_grouping_make_a_model),
        cmocka_unit_test(groups_that_are_none_fail_the_commit_too),
        cmocka_unit_test(a_rank_that_grouped_otherwise_fails_the_commit_of_all),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
