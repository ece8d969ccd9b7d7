#include <string.h>

#include "lib/topology/mask.h"
#include "tests/lib/topology/nodes.h"
#include "tests/support/unit_test.h"

static void text_and_mask_are_each_others_inverse(void **state)
{
    static const char *const TEXTS[] = {"0", "0-7,64-71", "1,3,5", "4095", "0-4095", "62-65"};

    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        const fsdp_mask mask = mask_of(TEXTS[i]);
        assert_true(mask_is(&mask, TEXTS[i]));
    }
    const fsdp_mask unordered = mask_of("3,1-2,2");
    assert_true(mask_is(&unordered, "1-3"));
}

static void an_empty_mask_says_none(void **state)
{
    const fsdp_mask none = {{0}};

    (void)state;
    assert_true(mask_is(&none, "none"));
    assert_int_equal(0, fsdp_mask_count(&none));
    assert_int_equal(-1, fsdpi_mask_first(&none));
}

static void numbers_are_counted_and_found(void **state)
{
    const fsdp_mask mask = mask_of("0-7,64-71,4095");

    (void)state;
    assert_int_equal(17, fsdp_mask_count(&mask));
    assert_true(fsdp_mask_has(&mask, 64));
    assert_true(fsdp_mask_has(&mask, 4095));
    assert_false(fsdp_mask_has(&mask, 8));
    assert_false(fsdp_mask_has(&mask, -1));
    assert_false(fsdp_mask_has(&mask, 4096));
}

static void text_that_is_no_list_is_refused(void **state)
{
    static const char *const TEXTS[] = {
        "", "a", "1,", ",1", "1-", "-1", "2-1", "1 2", "4096", "1-4096", "99999999999999999999"};
    fsdp_mask mask;

    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_mask_read(TEXTS[i], &mask));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_mask_read(NULL, &mask));
    assert_int_equal(FSDP_ERR_ARG, fsdp_mask_read("1", NULL));
}

static void text_that_does_not_fit_is_cut_between_numbers(void **state)
{
    const fsdp_mask mask = mask_of("1,3,5,7,9,11,13,15,17,19");

    (void)state;
    for (size_t size = 4; size < 30; size++) {
        char text[32];

        memset(text, 'x', sizeof text);
        fsdp_mask_text(&mask, text, size);
        assert_true(strlen(text) < size);
        const size_t length = strlen(text);
        if (strcmp(text, "1,3,5,7,9,11,13,15,17,19") != 0) {
            assert_string_equal("...", text + length - 3);
        }
        assert_true(text[size] == 'x');
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_mask_are_each_others_inverse),
        cmocka_unit_test(an_empty_mask_says_none),
        cmocka_unit_test(numbers_are_counted_and_found),
        cmocka_unit_test(text_that_is_no_list_is_refused),
        cmocka_unit_test(text_that_does_not_fit_is_cut_between_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
