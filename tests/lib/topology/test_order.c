/* Ranks in the order of their nodes, where a job was placed otherwise. */
#include <string.h>
#include <unistd.h>

#include "fsdp/topology.h"
#include "tests/support/mpi_test.h"

enum { MOST = 64, NAME_BYTES = 64 };

/* What one process was and is. */
typedef struct place {
    char host[NAME_BYTES];
    int  before, now;
} place;

static int lowest_on_host(const place *places, int size, const char *host)
{
    int lowest = size;

    for (int r = 0; r < size; r++) {
        lowest = strcmp(places[r].host, host) == 0 && places[r].before < lowest ? places[r].before : lowest;
    }
    return lowest;
}

/* Whatever the placement: hosts by their lowest rank, which puts all of one side by side, then ranks as they were. */
static void ranks_of_a_node_are_consecutive_and_keep_their_order(void **state)
{
    MPI_Comm  ordered;
    const int size = fsdp_test_size();
    place     mine = {.before = fsdp_test_rank()}, all[MOST], by_new[MOST];

    (void)state;
    assert_true(size <= MOST);
    (void)gethostname(mine.host, sizeof mine.host - 1);
    assert_int_equal(FSDP_OK, fsdp_comm_order_by_node(MPI_COMM_WORLD, &ordered));
    MPI_Comm_rank(ordered, &mine.now);
    MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        by_new[all[r].now] = all[r];
    }
    for (int n = 1; n < size; n++) {
        const int here = lowest_on_host(all, size, by_new[n].host),
                  last = lowest_on_host(all, size, by_new[n - 1].host);

        assert_true(here > last || (here == last && by_new[n].before > by_new[n - 1].before));
    }
    MPI_Comm_free(&ordered);
}

static void bad_arguments_are_errors_on_all_ranks(void **state)
{
    MPI_Comm ordered = MPI_COMM_WORLD;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_comm_order_by_node(MPI_COMM_NULL, &ordered));
    assert_true(ordered == MPI_COMM_NULL);
    assert_int_equal(FSDP_ERR_ARG, fsdp_comm_order_by_node(MPI_COMM_WORLD,
                                                           fsdp_test_rank() == fsdp_test_size() - 1 ? NULL : &ordered));
    assert_int_equal(FSDP_OK, fsdp_comm_order_by_node(MPI_COMM_WORLD, &ordered)); /* nothing is left behind */
    MPI_Comm_free(&ordered);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_a_node_are_consecutive_and_keep_their_order),
        cmocka_unit_test(bad_arguments_are_errors_on_all_ranks),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
