/** @file Keeping the MPI from giving the core away, with a setting of the test's own in place of Open MPI's. */
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mpi_yields.h"
#include "tests/support/unit_test.h"

static bool mpi_yields;
static int  n_settings;

bool opal_progress_set_yield_when_idle(bool yields);

__attribute__((visibility("default"))) bool opal_progress_set_yield_when_idle(bool yields)
{
    const bool before = mpi_yields;

    mpi_yields = yields;
    n_settings++;
    return before;
}

/* What was found stays known for the life of a process, so that this has one of its own. */
static void an_mpi_that_does_not_yield_is_left_alone(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        mpi_yields = false;
        fsdpi_mpi_suspend_yields();
        const int asked = n_settings;
        fsdpi_mpi_resume_yields();
        fsdpi_mpi_suspend_yields();
        fsdpi_mpi_resume_yields();
        _exit(mpi_yields || asked == 0 || n_settings != asked ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
}

static void it_yields_again_when_the_last_thread_says_so(void **state)
{
    (void)state;
    mpi_yields = true;
    for (int round = 0; round < 2; round++) {
        fsdpi_mpi_suspend_yields();
        assert_false(mpi_yields);
        fsdpi_mpi_suspend_yields();
        assert_false(mpi_yields);
        fsdpi_mpi_resume_yields();
        assert_false(mpi_yields);
        fsdpi_mpi_resume_yields();
        assert_true(mpi_yields);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_mpi_that_does_not_yield_is_left_alone),
        cmocka_unit_test(it_yields_again_when_the_last_thread_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
