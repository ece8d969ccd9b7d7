#include "tests/collectives/collective_test.h"

/* Each rank in turn is the last to arrive. What it wrote into a shared window before is seen by all after the barrier. */
static void what_was_done_before_it_is_seen_after_it(void **state)
{
    const contexts *c = *state;
    MPI_Win         window;
    int32_t        *shared, *base;
    MPI_Aint        bytes;
    int             unit;

    MPI_Win_allocate_shared(c->rank == 0 ? sizeof *shared : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &shared);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    for (int k = 0; k < N_CONTEXTS; k++) {
        for (int turn = 0; turn < 3 * c->size; turn++) {
            if (c->rank == turn % c->size) {
                __atomic_store_n(shared, k * 1000 + turn, __ATOMIC_SEQ_CST);
            }
            assert_int_equal(FSDP_OK, fsdp_barrier(c->each[k]));
            assert_int_equal(k * 1000 + turn, __atomic_load_n(shared, __ATOMIC_SEQ_CST));
            assert_int_equal(FSDP_OK, fsdp_barrier(c->each[k]));
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void it_also_holds_without_agreement(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.verify = FSDP_VERIFY_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    fsdp_request *late;
    int           done = 0;
    if (fsdp_rank(ctx) > 0) {
        assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &late));
        assert_int_equal(FSDP_OK, fsdp_test(late, &done));
        assert_int_equal(0, done); /* rank 0 comes only after hearing that all others have looked */
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &late));
    }
    assert_int_equal(FSDP_OK, fsdp_wait(late));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_done_before_it_is_seen_after_it),
        cmocka_unit_test(it_also_holds_without_agreement),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
