#include <stdlib.h>
#include <string.h>

#include "fsdp/sampler.h"
#include "tests/support/unit_test.h"

static const size_t DATASETS[] = {1, 2, 3, 5, 8, 64, 97, 1000, 1009, 65536};
static const int    RANKS[]    = {1, 2, 3, 5, 8};

/* How often each sample is drawn in an epoch, over all ranks. */
static unsigned *draws(fsdp_sampler sampler, uint64_t epoch)
{
    unsigned *times = calloc(sampler.dataset, sizeof *times);

    for (sampler.rank = 0; sampler.rank < sampler.size; sampler.rank++) {
        assert_int_equal(FSDP_OK, fsdp_sampler_check(&sampler));
        for (size_t i = 0; i < fsdp_sampler_length(&sampler); i++) {
            const size_t sample = fsdp_sampler_index(&sampler, epoch, i);
            assert_true(sample < sampler.dataset);
            times[sample]++;
        }
    }
    return times;
}

static void check_draws(const fsdp_sampler *sampler)
{
    const size_t drawn = fsdp_sampler_length(sampler) * (size_t)sampler->size;
    const size_t least = drawn / sampler->dataset;
    unsigned    *times = draws(*sampler, 3);
    size_t       sum   = 0;

    for (size_t i = 0; i < sampler->dataset; i++) {
        assert_true(times[i] == least || times[i] == least + 1);
        sum += times[i];
    }
    assert_int_equal(drawn, sum);
    free(times);
}

static void every_sample_is_drawn_once_and_the_padding_once_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof DATASETS / sizeof DATASETS[0]; i++) {
        for (size_t j = 0; j < sizeof RANKS / sizeof RANKS[0]; j++) {
            fsdp_sampler sampler = {.dataset = DATASETS[i], .size = RANKS[j], .seed = 7, .shuffle = 1};
            const size_t size    = (size_t)RANKS[j];

            assert_int_equal((DATASETS[i] + size - 1) / size, fsdp_sampler_length(&sampler));
            check_draws(&sampler);
            if (DATASETS[i] >= size) {
                sampler.drop_last = 1;
                assert_int_equal(DATASETS[i] / size, fsdp_sampler_length(&sampler));
                check_draws(&sampler);
            }
        }
    }
}

static void ranks_take_turns_in_one_permutation(void **state)
{
    const fsdp_sampler whole = {.dataset = 101, .size = 1, .seed = 9, .shuffle = 1};

    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        const fsdp_sampler part = {.dataset = 101, .rank = rank, .size = 4, .seed = 9, .shuffle = 1};
        for (size_t i = 0; i < fsdp_sampler_length(&part); i++) {
            const size_t position = (i * 4 + (size_t)rank) % 101; /* the padding continues from the beginning */
            assert_int_equal(fsdp_sampler_index(&whole, 5, position), fsdp_sampler_index(&part, 5, i));
        }
    }
}

static void without_shuffling_samples_come_in_order(void **state)
{
    const fsdp_sampler sampler = {.dataset = 10, .rank = 2, .size = 4};

    (void)state;
    assert_int_equal(2, fsdp_sampler_index(&sampler, 0, 0));
    assert_int_equal(6, fsdp_sampler_index(&sampler, 1, 1));
    assert_int_equal(0, fsdp_sampler_index(&sampler, 2, 2)); /* position 10 of 10: the first again */
}

static void epochs_and_seeds_are_shuffled_differently(void **state)
{
    const fsdp_sampler sampler    = {.dataset = 1000, .size = 1, .seed = 1, .shuffle = 1};
    const fsdp_sampler other      = {.dataset = 1000, .size = 1, .seed = 2, .shuffle = 1};
    size_t             same_epoch = 0, same_seed = 0, in_place = 0;

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        same_epoch += fsdp_sampler_index(&sampler, 0, i) == fsdp_sampler_index(&sampler, 1, i);
        same_seed += fsdp_sampler_index(&sampler, 0, i) == fsdp_sampler_index(&other, 0, i);
        in_place += fsdp_sampler_index(&sampler, 0, i) == i;
        assert_int_equal(fsdp_sampler_index(&sampler, 1, i), fsdp_sampler_index(&other, 0, i)); /* seed + epoch */
    }
    assert_true(same_epoch < 10 && same_seed < 10 && in_place < 10); /* 1 is expected of each */
}

static void bad_fields_are_named(void **state)
{
    static const struct {
        fsdp_sampler sampler;
        const char  *word;
    } bad[] = {
        {{.dataset = 0, .size = 1}, "dataset is 0"},
        {{.dataset = 1, .size = 0}, "of 0 ranks"},
        {{.dataset = 1, .rank = 2, .size = 2}, "rank 2 of 2"},
        {{.dataset = 1, .rank = -1, .size = 2}, "rank -1"},
        {{.dataset = 3, .size = 4, .drop_last = 1}, "3 samples on 4 ranks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_sampler_check(&bad[i].sampler));
        assert_non_null(strstr(fsdp_last_error(NULL), bad[i].word));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_sampler_check(NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_is_drawn_once_and_the_padding_once_more),
        cmocka_unit_test(ranks_take_turns_in_one_permutation),
        cmocka_unit_test(without_shuffling_samples_come_in_order),
        cmocka_unit_test(epochs_and_seeds_are_shuffled_differently),
        cmocka_unit_test(bad_fields_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
