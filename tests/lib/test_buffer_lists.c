/** @file The lists of symmetric buffers, while another thread holds their lock to take one away. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/context/buffers.h"
#include "tests/support/unit_test.h"

/* The linker gives calls of sched_yield() to this one: whoever finds the lock held comes here. */
int __wrap_sched_yield(void);

enum { BYTES = 64 };

static fsdpi_buffers buffers;
static fsdpi_buffer  first, second;
static unsigned char memory[2][BYTES];
static int           waits;

/*
 * The other thread: takes the second buffer, the first of its list, off that list as fsdp_model_destroy() does, releases its
 * record, and gives the lock. What has looked into the lists before would go on from that record.
 */
int __wrap_sched_yield(void)
{
    waits++;
    if (buffers.live == &second) {
        buffers.live = &first;
        memset(&second, 0, sizeof second);
    }
    fsdpi_lock_give(&buffers.lock);
    return 0;
}

/* Two live buffers, and the lock held. */
static int hold(void **state)
{
    (void)state;
    memset(&buffers, 0, sizeof buffers);
    first  = (fsdpi_buffer){.kind = FSDP_BUFFER_PER_NODE, .number = 1, .base = memory[0], .bytes = BYTES};
    second = (fsdpi_buffer){.kind = FSDP_BUFFER_PER_RANK, .number = 2, .base = memory[1], .bytes = BYTES};
    fsdpi_buffer_enter(&buffers, &first);
    fsdpi_buffer_enter(&buffers, &second);
    fsdpi_lock_take(&buffers.lock);
    waits = 0;
    return 0;
}

/* Whoever has come has waited once, and has left the lock free. */
static int check_that_it_waited(void **state)
{
    (void)state;
    return waits == 1 && fsdpi_lock_try(&buffers.lock) ? 0 : -1;
}

static void an_address_is_looked_up_under_the_lock(void **state)
{
    (void)state;
    assert_ptr_equal(&first, fsdpi_buffer_of(&buffers, memory[0] + 8, 8));
}

static void an_address_that_goes_away_is_not_found(void **state)
{
    (void)state;
    assert_null(fsdpi_buffer_of(&buffers, memory[1], 8));
}

static void a_beginning_is_looked_up_under_the_lock(void **state)
{
    (void)state;
    assert_ptr_equal(&first, fsdpi_buffer_beginning_at(&buffers, memory[0]));
}

static void a_number_is_looked_up_under_the_lock(void **state)
{
    (void)state;
    assert_ptr_equal(&first, fsdpi_buffer_numbered(&buffers, 1));
}

static void a_buffer_enters_under_the_lock(void **state)
{
    static fsdpi_buffer third;

    (void)state;
    fsdpi_buffer_enter(&buffers, &third);
    assert_ptr_equal(&third, buffers.live);
    assert_ptr_equal(&first, third.next);
}

static void a_buffer_leaves_under_the_lock(void **state)
{
    (void)state;
    fsdpi_buffer_leave(&buffers, &first);
    assert_null(buffers.live);
    assert_int_equal(0, buffers.n_per_node);
}

static void a_buffer_is_buried_under_the_lock(void **state)
{
    static fsdpi_buffer gone;

    (void)state;
    fsdpi_buffer_bury(&buffers, &gone);
    assert_ptr_equal(&gone, buffers.freed);
    assert_int_equal(1, buffers.n_freed);
}

static void the_oldest_is_taken_under_the_lock(void **state)
{
    (void)state;
    assert_null(fsdpi_buffer_oldest(&buffers, 0));
}

int main(void)
{
#define UNDER_THE_LOCK(test) cmocka_unit_test_setup_teardown(test, hold, check_that_it_waited)
    static const struct CMUnitTest tests[] = {
        UNDER_THE_LOCK(an_address_is_looked_up_under_the_lock),  UNDER_THE_LOCK(an_address_that_goes_away_is_not_found),
        UNDER_THE_LOCK(a_beginning_is_looked_up_under_the_lock), UNDER_THE_LOCK(a_number_is_looked_up_under_the_lock),
        UNDER_THE_LOCK(a_buffer_enters_under_the_lock),          UNDER_THE_LOCK(a_buffer_leaves_under_the_lock),
        UNDER_THE_LOCK(a_buffer_is_buried_under_the_lock),       UNDER_THE_LOCK(the_oldest_is_taken_under_the_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
