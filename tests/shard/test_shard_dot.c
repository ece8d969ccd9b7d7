/*
 * Dot products over shards: each element counts once and nothing is rounded but the result, under every strategy, for any number of
 * ranks, on the host and on a GPU. Against sums over whole tensors, which every rank has been given.
 */
#include <math.h>
#include <string.h>

#include "fsdp/tensor_io.h"
#include "kernels/kernels.h"
#include "lib/base/error.h"
#include "shard/schedule/shard_dot.h"
#include "tests/shard/small_model.h"

/* Of masters with gradients, and with themselves. */
enum { CROSS, OWN, N_DOTS, MOST_RANKS = 8 };

static void expected_dots(small_model *m, fsdpi_exact_dot *dots)
{
    static float values[MOST_ELEMENTS], gradients[MOST_ELEMENTS];
    const void  *terms[MOST_RANKS];

    for (size_t r = 0; r < MOST_RANKS; r++) {
        terms[r] = values;
    }
    for (size_t t = 0; t < N_TENSORS; t++) {
        const size_t n = tensor_elements(t);

        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(m->model, TENSORS[t].name, values, n * sizeof *values));
        fsdpi_kernels_scalar.reduce(gradients, terms, (size_t)fsdp_test_size(), n, FSDP_F32, FSDP_AVG,
                                    (size_t)fsdp_test_size());
        fsdpi_exact_dot_add(&dots[OWN], values, values, n, FSDP_F32);
        fsdpi_exact_dot_add(&dots[CROSS], values, gradients, n, FSDP_F32);
    }
}

static void dots_of_shards(small_model *m, fsdpi_exact_dot *dots)
{
    for (fsdpi_flat *flat = m->model->flats; flat != NULL; flat = flat->next) {
        fsdpi_shard_dot_add(flat, flat->master, flat->gradient, &dots[CROSS]);
        fsdpi_shard_dot_add(flat, flat->master, flat->master, &dots[OWN]);
    }
    assert_int_equal(FSDP_OK, fsdpi_shard_dots_join(m->model, "test", FSDP_OK, N_DOTS, dots));
}

/* Gradients are the parameters themselves, on all ranks. */
static void give_parameters_as_gradients(small_model *m)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            const size_t i = t - FIRST_TENSOR[u];

            memcpy(fsdp_unit_grad(m->units[u], i), fsdp_unit_param(m->units[u], i), tensor_elements(t) * sizeof(float));
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, (double)INFINITY, NULL)); /* completes reductions */
}

static void check(small_model *m)
{
    fsdpi_exact_dot expected[N_DOTS] = {{.nans = 0}}, found[N_DOTS] = {{.nans = 0}};

    give_parameters_as_gradients(m);
    expected_dots(m, expected);
    dots_of_shards(m, found);
    assert_true(fsdpi_exact_dot_value(&expected[OWN]) > 0);
    assert_true(fsdpi_exact_dot_value(&expected[OWN]) == fsdpi_exact_dot_value(&found[OWN]));
    assert_true(fsdpi_exact_dot_value(&expected[CROSS]) == fsdpi_exact_dot_value(&found[CROSS]));
}

static void each_element_counts_once_under_every_strategy(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check);
}

static void check_failure(small_model *m)
{
    const fsdp_status mine = fsdp_test_rank() == 0 ? FSDP_ERR_ARG : FSDP_OK;
    fsdpi_exact_dot   dot  = {.nans = 0};

    (void)fsdpi_fail(m->ctx, mine, "this rank has none");
    assert_int_equal(FSDP_ERR_ARG, fsdpi_shard_dots_join(m->model, "test", mine, 1, &dot));
    assert_int_equal(FSDP_OK, fsdpi_shard_dots_join(m->model, "test", FSDP_OK, 1, &dot)); /* and all go on */
}

static void a_rank_that_has_failed_fails_on_every_rank(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_failure);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_counts_once_under_every_strategy),
        cmocka_unit_test(a_rank_that_has_failed_fails_on_every_rank),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
