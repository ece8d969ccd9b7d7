/*
 * Who waits for peers on its node naps, and lets MPI go on in between. Where that moves messages of the caller's own, piece
 * by piece, it does not nap between two pieces. MPI is made to look busy: its probe takes as long as a piece would.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "fsdp/collectives.h"
#include "lib/base/clock.h"
#include "lib/sync/mailbox.h"
#include "tests/support/mpi_test.h"

/*
 * On a busy machine an idle probe may have been away from its core for long, after which some naps come before the next: by
 * NOTICED, the rank has seen that MPI is at work.
 */
enum { IDLE_PROBES = 20, NOTICED = IDLE_PROBES + 40, PIECES = 100, PIECE_NANOSECONDS = 300000, TAG = 9 };

static atomic_bool watching;
static atomic_int  probes, naps;

/* ---- in front of the library and of MPI ------------------------------------------------------------------------------ */

bool __real_fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds);
bool __wrap_fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds);

bool __wrap_fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds)
{
    naps += watching && probes > NOTICED && probes < IDLE_PROBES + PIECES;
    return __real_fsdpi_mailbox_sleep(box, seconds);
}

static void take_as_long_as_a_piece(void)
{
    const uint64_t begin = fsdpi_thread_nanoseconds();

    while (fsdpi_thread_nanoseconds() - begin < PIECE_NANOSECONDS) {
    }
}

/* With the last piece, the message is there: its receivers come too. */
static void let_the_others_come(void)
{
    for (int r = 1; r < fsdp_test_size(); r++) {
        PMPI_Send(NULL, 0, MPI_BYTE, r, TAG, MPI_COMM_WORLD);
    }
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *any, MPI_Status *status)
{
    const int code = PMPI_Iprobe(from, tag, comm, any, status);

    if (watching && probes < IDLE_PROBES + PIECES) {
        if (++probes > IDLE_PROBES) {
            take_as_long_as_a_piece();
        }
        if (probes == IDLE_PROBES + PIECES) {
            let_the_others_come();
        }
    }
    return code;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------- */

static void meet(fsdp_context *ctx, bool by_thread)
{
    const struct timespec while_it_works = {.tv_nsec = 1000000};
    fsdp_request         *request;

    assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &request));
    while (by_thread && probes < IDLE_PROBES + PIECES) {
        (void)nanosleep(&while_it_works, NULL);
    }
    assert_int_equal(FSDP_OK, fsdp_wait(request));
}

static void move_a_message(fsdp_context *ctx, bool by_thread)
{
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    if (fsdp_rank(ctx) > 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
        return;
    }
    probes = naps = 0;
    watching      = true;
    meet(ctx, by_thread);
    watching = false;
    assert_int_equal(IDLE_PROBES + PIECES, probes);
    assert_int_equal(0, naps);
}

static void who_waits_does_not_nap_between_pieces(void **state)
{
    move_a_message(*state, false);
}

static void the_thread_does_not_nap_between_pieces(void **state)
{
    if (!fsdp_has_progress_thread(*state)) {
        skip();
    }
    move_a_message(*state, true);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_does_not_nap_between_pieces),
        cmocka_unit_test(the_thread_does_not_nap_between_pieces),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
