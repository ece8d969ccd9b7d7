#include <string.h>

#include "fsdp/random.h"
#include "tests/shard/small_model.h"

static float expected_value(size_t t, size_t i)
{
    const fsdp_tensor *tensor = &TENSORS[t];
    const uint64_t     stream = fsdp_random_stream(tensor->name);

    switch (tensor->fill) {
    case FSDP_FILL_NORMAL:
        return (float)(tensor->a + tensor->b * fsdp_random_normal(1234, stream, i));
    case FSDP_FILL_UNIFORM:
        return (float)(tensor->a + (tensor->b - tensor->a) * fsdp_random_uniform(1234, stream, i));
    default:
        return (float)tensor->a;
    }
}

/* The expectation knows nothing of ranks, so holding it on 1, 2, 3, 5 and 8 ranks makes the values the same on all. */
static void values_depend_on_seed_name_and_index_only(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;
        float       all[MOST_ELEMENTS];
        size_t      k = 0;

        small_model_open(&m, NULL, (fsdp_strategy)strategy);
        copy_parameters(&m, all);
        for (size_t t = 0; t < N_TENSORS; t++) {
            for (size_t i = 0; i < tensor_elements(t); i++, k++) {
                const float expected = expected_value(t, i);
                assert_memory_equal(&expected, &all[k], sizeof expected);
            }
        }
        small_model_close(&m);
    }
}

/* Once over all ranks, once on each rank alone. */
static void the_hash_is_the_same_for_every_strategy_and_size(void **state)
{
    static const fsdp_strategy strategies[] = {FSDP_FULL_SHARD, FSDP_NO_SHARD, FSDP_FULL_SHARD};
    uint64_t                   hash[3];

    (void)state;
    for (int k = 0; k < 3; k++) {
        small_model m;
        small_model_open_on(&m, k < 2 ? MPI_COMM_WORLD : MPI_COMM_SELF, strategies[k]);
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash[k]));
        small_model_close(&m);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] == hash[2]);
}

static void the_hash_sees_a_single_bit(void **state)
{
    small_model        m;
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    uint64_t           hash, other;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash));
    small_model_close(&m);
    options.seed = 1235;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &other));
    assert_true(hash != other);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_hash(m.model, NULL));
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_depend_on_seed_name_and_index_only),
        cmocka_unit_test(the_hash_is_the_same_for_every_strategy_and_size),
        cmocka_unit_test(the_hash_sees_a_single_bit),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
