/* Who comes back late from giving the core away leaves it for a while: 8 times, then twice as often each time, to 4096. */
#include "lib/base/giving_way.h"
#include "tests/support/unit_test.h"

/* How many times it is not done before it is. */
static int times_left_out(fsdpi_giving_way *way)
{
    int n = 0;

    while (!fsdpi_may_give_way(way)) {
        n++;
    }
    return n;
}

static void who_comes_back_soon_does_it_again(void **state)
{
    fsdpi_giving_way way = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(0, times_left_out(&way));
        fsdpi_gave_way(&way, false);
    }
}

static void who_comes_back_late_leaves_it_for_longer_and_longer(void **state)
{
    fsdpi_giving_way way = {0};

    (void)state;
    for (int expected = 8; expected <= 4096; expected *= 2) {
        fsdpi_gave_way(&way, true);
        assert_int_equal(expected, times_left_out(&way));
    }
    fsdpi_gave_way(&way, true);
    assert_int_equal(4096, times_left_out(&way));
    fsdpi_gave_way(&way, false);
    assert_int_equal(0, times_left_out(&way));
    fsdpi_gave_way(&way, true);
    assert_int_equal(8, times_left_out(&way));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_back_soon_does_it_again),
        cmocka_unit_test(who_comes_back_late_leaves_it_for_longer_and_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
