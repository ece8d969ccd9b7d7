/** @file Meshes: who is on which axis with whom, what their contexts compute, and what is refused. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "tests/support/mpi_test.h"

enum { MOST = 8 };

/* The ranks of the context along `axes` are those that fsdp_mesh_rank() says, in order, and reduce over each other alone. */
static void check_line(fsdp_mesh *mesh, const char *axes, const int *expected, int n)
{
    fsdp_context *ctx;
    int32_t       mine = fsdp_test_rank(), all[MOST], sum, expected_sum = 0;

    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, axes, &ctx));
    assert_int_equal(n, fsdp_size(ctx));
    assert_int_equal(n, fsdp_mesh_size(mesh, axes));
    assert_int_equal(fsdp_rank(ctx), fsdp_mesh_position(mesh, axes));
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, &mine, all, 1, FSDP_I32));
    for (int i = 0; i < n; i++) {
        assert_int_equal(expected[i], all[i]);
        expected_sum += expected[i];
    }
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, &mine, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(expected_sum, sum);
}

static void check_lines(fsdp_context *ctx, const int *sizes, const int *order)
{
    const fsdp_axis axes[] = {{"pp", sizes[0]}, {"dp", sizes[1]}, {"tp", sizes[2]}};
    fsdp_mesh      *mesh;

    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 3, order, &mesh));
    const int pp = fsdp_mesh_position(mesh, "pp"), dp = fsdp_mesh_position(mesh, "dp"),
              tp = fsdp_mesh_position(mesh, "tp");
    int line[3][MOST], plane[MOST], all[MOST];

    assert_int_equal(fsdp_test_rank(), fsdp_mesh_rank(mesh, (int[]){pp, dp, tp}));
    for (int p = 0, n = 0, of_plane = 0; p < sizes[0]; p++) {
        line[0][p] = fsdp_mesh_rank(mesh, (int[]){p, dp, tp});
        for (int d = 0; d < sizes[1]; d++) {
            line[1][d]        = fsdp_mesh_rank(mesh, (int[]){pp, d, tp});
            plane[of_plane++] = fsdp_mesh_rank(mesh, (int[]){p, d, tp});
            for (int t = 0; t < sizes[2]; t++) {
                line[2][t] = fsdp_mesh_rank(mesh, (int[]){pp, dp, t});
                all[n++]   = fsdp_mesh_rank(mesh, (int[]){p, d, t});
            }
        }
    }
    check_line(mesh, "pp", line[0], sizes[0]);
    check_line(mesh, "dp", line[1], sizes[1]);
    check_line(mesh, "tp", line[2], sizes[2]);
    check_line(mesh, "dp+pp", plane, sizes[0] * sizes[1]);
    check_line(mesh, "tp+pp+dp", all, fsdp_size(ctx));
    fsdp_mesh_destroy(mesh);
}

static void ranks_on_an_axis_have_a_context(void **state)
{
    fsdp_context *ctx  = *state;
    const int     size = fsdp_size(ctx);
    int           order[MOST];

    for (int i = 0; i < size; i++) {
        order[i] = (i * 3 + 1) % size; /* 3 ranks: not a permutation */
        order[i] = size % 3 == 0 ? size - 1 - i : order[i];
    }
    for (int p = 1; p <= size; p++) {
        for (int d = 1; d <= size; d++) {
            if (size % (p * d) == 0) {
                check_lines(ctx, (int[]){p, d, size / (p * d)}, NULL);
                check_lines(ctx, (int[]){p, d, size / (p * d)}, order);
            }
        }
    }
}

static void a_context_is_opened_once_and_all_ranks_are_the_own_one(void **state)
{
    fsdp_context   *ctx    = *state, *first, *second;
    const fsdp_axis axes[] = {{"dp", 0}, {"one", 1}};
    fsdp_mesh      *mesh;

    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 2, NULL, &mesh));
    assert_int_equal(fsdp_size(ctx), fsdp_mesh_size(mesh, "dp"));
    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, "one", &first));
    assert_int_equal(1, fsdp_size(first));
    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, "one", &second));
    assert_ptr_equal(first, second);
    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, "dp+one", &first));
    assert_int_equal(fsdp_size(ctx), fsdp_size(first));
    fsdp_mesh_destroy(mesh);
    fsdp_mesh_destroy(NULL);
}

static void its_memory_is_counted_and_given_back(void **state)
{
    fsdp_context   *ctx    = *state, *part;
    const fsdp_axis axes[] = {{"dp", 0}, {"tp", 1}};
    fsdp_memory     before, within, after, of_part;
    fsdp_mesh      *mesh;

    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &before));
    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 2, NULL, &mesh));
    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, "tp", &part));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &within));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(part, &of_part));
    if (fsdp_size(ctx) > 1) { /* else it is the context itself */
        assert_true(within.current_total - before.current_total >= of_part.current_total);
    }
    fsdp_mesh_destroy(mesh);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &after));
    assert_memory_equal(before.current, after.current, sizeof before.current);
}

static void a_model_is_divided_along_one_axis_only(void **state)
{
    fsdp_context      *ctx  = *state, *dp;
    const int          size = fsdp_size(ctx), tp_size = size % 2 == 0 ? 2 : 1;
    const fsdp_axis    axes[]  = {{"dp", 0}, {"tp", tp_size}};
    const fsdp_tensor  tensor  = {.name = "w", .n_dims = 1, .shape = {100}, .dtype = FSDP_F32};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_mesh         *mesh;
    fsdp_model        *model;
    fsdp_unit         *unit;

    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 2, NULL, &mesh));
    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, "dp", &dp));
    options.optimizer = FSDP_SGD;
    assert_int_equal(FSDP_OK, fsdp_model_create(dp, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    fsdp_optimizer_options sgd;
    fsdp_optimizer        *optimizer;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &sgd));
    sgd.lr = 1.0;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &sgd, &optimizer));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
    float *gradient = fsdp_unit_grad(unit, 0);
    for (int i = 0; i < 100; i++) {
        gradient[i] = (float)(1 + fsdp_mesh_position(mesh, "tp")); /* the same along dp only */
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
    const float *w = fsdp_unit_param(unit, 0);
    for (int i = 0; i < 100; i++) {
        assert_true(w[i] == -(float)(1 + fsdp_mesh_position(mesh, "tp")));
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
    fsdp_model_destroy(model);
    fsdp_mesh_destroy(mesh);
}

/* ---- refused ------------------------------------------------------------------------------------------------------ */

static void refuses(fsdp_context *ctx, const fsdp_axis *axes, size_t n, const int *order, const char *words)
{
    fsdp_mesh *mesh;

    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_create(ctx, axes, n, order, &mesh));
    assert_null(mesh);
    assert_says(ctx, words);
}

static void what_is_no_mesh_is_refused_on_all_ranks(void **state)
{
    fsdp_context *ctx  = *state;
    const int     size = fsdp_size(ctx);
    int           order[MOST];
    const char   *long_name = "a_name_of_an_axis_that_is_too_long";

    refuses(ctx, (fsdp_axis[]){{"dp", size + 1}}, 1, NULL, "ranks; their product has to be the number of ranks");
    refuses(ctx, (fsdp_axis[]){{"dp", 0}, {"tp", size + 1}}, 2, NULL, "dp 0 x tp");
    refuses(ctx, (fsdp_axis[]){{"dp", 1 << 30}, {"tp", 1 << 30}}, 2, NULL, "1073741824");
    refuses(ctx, (fsdp_axis[]){{"dp", 0}, {"tp", 0}}, 2, NULL, "dp 0 x tp 0");
    refuses(ctx, (fsdp_axis[]){{"dp", -1}}, 1, NULL, "dp -1");
    refuses(ctx, (fsdp_axis[]){{"dp", 0}, {"dp", 1}}, 2, NULL, "two axes are named \"dp\"");
    refuses(ctx, (fsdp_axis[]){{"", 0}}, 1, NULL, "axis 0 is named \"\"");
    refuses(ctx, (fsdp_axis[]){{NULL, 0}}, 1, NULL, "axis 0 is named \"\"");
    refuses(ctx, (fsdp_axis[]){{"d+p", 0}}, 1, NULL, "\"d+p\"");
    refuses(ctx, (fsdp_axis[]){{long_name, 0}}, 1, NULL, long_name);
    refuses(ctx, (fsdp_axis[]){{"dp", 0}}, 0, NULL, "0 axes");
    refuses(ctx, NULL, 1, NULL, "give 1 to 6");
    refuses(ctx, (fsdp_axis[7]){{"dp", 0}}, 7, NULL, "7 axes");
    for (int i = 0; i < size; i++) {
        order[i] = i;
    }
    order[size - 1] = size;
    refuses(ctx, (fsdp_axis[]){{"dp", 0}}, 1, order, "no rank or there already");
    order[size - 1] = size > 1 ? 0 : -1;
    refuses(ctx, (fsdp_axis[]){{"dp", 0}}, 1, order, "no rank or there already");
}

static void ranks_that_differ_are_told(void **state)
{
    fsdp_context   *ctx   = *state, *part;
    const bool      odd   = fsdp_test_rank() % 2 == 1;
    const fsdp_axis one[] = {{odd ? "dp" : "tp", 0}}, axes[] = {{"dp", 0}, {"tp", 1}};
    fsdp_mesh      *mesh;

    if (fsdp_size(ctx) == 1) {
        return;
    }
    assert_int_equal(FSDP_ERR_MISMATCH, fsdp_mesh_create(ctx, one, 1, NULL, &mesh));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_create(ctx, odd ? NULL : axes, 2, NULL, &mesh));
    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 2, NULL, &mesh));
    assert_int_equal(FSDP_ERR_MISMATCH, fsdp_mesh_context(mesh, odd ? "dp" : "tp", &part));
    assert_null(part);
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_context(mesh, odd ? "dp" : "pp", &part));
    assert_says(ctx, "\"pp\" does not name axes; these are dp");
    assert_int_equal(FSDP_OK, fsdp_mesh_context(mesh, "tp", &part));
    fsdp_mesh_destroy(mesh);
}

static void names_that_are_none_and_null_are_refused(void **state)
{
    fsdp_context   *ctx    = *state, *part;
    const fsdp_axis axes[] = {{"dp", 0}, {"tp", 1}};
    fsdp_mesh      *mesh;

    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 2, NULL, &mesh));
    for (size_t i = 0; i < 6; i++) {
        const char *const wrong[] = {"", "pp", "dp+", "+dp", "dp+dp", NULL};

        assert_int_equal(-1, fsdp_mesh_size(mesh, wrong[i]));
        assert_int_equal(-1, fsdp_mesh_position(mesh, wrong[i]));
        assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_context(mesh, wrong[i], &part));
    }
    assert_int_equal(-1, fsdp_mesh_rank(mesh, (int[]){0, 1}));
    assert_says(ctx, "position 1 along axis \"tp\"");
    assert_int_equal(-1, fsdp_mesh_rank(mesh, (int[]){-1, 0}));
    assert_int_equal(-1, fsdp_mesh_rank(mesh, NULL));
    assert_int_equal(-1, fsdp_mesh_rank(NULL, (int[]){0, 0}));
    assert_int_equal(-1, fsdp_mesh_size(NULL, "dp"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_print(NULL, stderr));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_print(mesh, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_context(mesh, "dp", NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_context(NULL, "dp", &part));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_create(ctx, axes, 2, NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mesh_create(NULL, axes, 2, NULL, &mesh));
    fsdp_mesh_destroy(mesh);
}

/* ---- printed ------------------------------------------------------------------------------------------------------ */

static void it_says_where_ranks_are(void **state)
{
    fsdp_context   *ctx        = *state;
    const int       size       = fsdp_size(ctx);
    const fsdp_axis axes[]     = {{"dp", 0}, {"tp", size % 2 == 0 ? 2 : 1}};
    char            text[1024] = "", line[64];
    fsdp_mesh      *mesh;
    FILE           *file = fmemopen(text, sizeof text, "w");

    assert_non_null(file);
    assert_int_equal(FSDP_OK, fsdp_mesh_create(ctx, axes, 2, NULL, &mesh));
    assert_int_equal(FSDP_OK, fsdp_mesh_print(mesh, file));
    (void)fclose(file);
    (void)snprintf(line, sizeof line, "%d rank%s on %d node", size, size == 1 ? "" : "s", fsdp_node_count(ctx));
    assert_non_null(strstr(text, line));
    if (size % 2 == 0 && fsdp_node_count(ctx) == 1) {
        (void)snprintf(line, sizeof line, "dp %d  tp  node 0: %d %d\n", size / 2 - 1, size - 2, size - 1);
        assert_non_null(strstr(text, line));
    }
    fsdp_mesh_destroy(mesh);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_on_an_axis_have_a_context),
        cmocka_unit_test(a_context_is_opened_once_and_all_ranks_are_the_own_one),
        cmocka_unit_test(its_memory_is_counted_and_given_back),
        cmocka_unit_test(a_model_is_divided_along_one_axis_only),
        cmocka_unit_test(what_is_no_mesh_is_refused_on_all_ranks),
        cmocka_unit_test(ranks_that_differ_are_told),
        cmocka_unit_test(names_that_are_none_and_null_are_refused),
        cmocka_unit_test(it_says_where_ranks_are),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
