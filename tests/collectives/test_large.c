/** @file Vectors of more bytes than an int counts, between nodes: of as many GiB on each rank as the argument says. */
#include <stdbool.h>
#include <stdlib.h>

#include "fsdp/collectives.h"
#include "lib/base/available_memory.h"
#include "tests/support/mpi_test.h"

static const size_t ROOM_TO_SPARE = (size_t)2 << 30;

static size_t whole_bytes;
static bool   skipped;

static uint64_t value(size_t i)
{
    return (uint64_t)i * 0x9e3779b97f4a7c15u + 1;
}

static void fill(uint64_t *full, size_t begin, size_t count)
{
    for (size_t i = begin; i < begin + count; i++) {
        full[i] = value(i);
    }
}

static void check(const uint64_t *full, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (full[i] != value(i)) {
            fail_msg("element %zu of %zu is wrong", i, count);
        }
    }
}

/* Messages as large as they may be, so that pieces begin beyond what an int counts. */
static void large_vectors_are_gathered_and_broadcast(void **state)
{
    const size_t  size = (size_t)fsdp_test_size(), rank = (size_t)fsdp_test_rank();
    const size_t  count = whole_bytes / sizeof(uint64_t) / size;
    const bool    fits  = fsdpi_available_memory("") > size * whole_bytes + ROOM_TO_SPARE;
    int           all   = fits;
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) {
        print_message("skipped: this takes %zu GiB of memory\n", (size * whole_bytes + ROOM_TO_SPARE) >> 30);
        skipped = true;
        return;
    }
    uint64_t *full = malloc(whole_bytes);
    assert_non_null(full);
    fsdp_config_init(&config);
    config.node_size     = 1;
    config.message_bytes = 2147483632;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    fill(full, rank * count, count);
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, FSDP_IN_PLACE, full, count, FSDP_I64));
    check(full, size * count);
    if (rank > 0) {
        full[0] = full[size * count - 1] = 0;
    }
    assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, full, size * count, FSDP_I64, 0));
    check(full, size * count);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(full);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_vectors_are_gathered_and_broadcast),
    };

    if (argc != 2) {
        return EXIT_FAILURE;
    }
    whole_bytes      = (size_t)strtoull(argv[1], NULL, 10) << 30;
    const int failed = fsdp_test_main(argc, argv, tests, NULL, NULL);

    return failed == 0 && skipped ? FSDP_TEST_SKIPPED : failed;
}
