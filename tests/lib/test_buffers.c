/** @file Symmetric buffers: what they are, what is refused, and what is left of them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "lib/device/memory.h"
#include "tests/support/mpi_test.h"

enum { N_NODE_SIZES = 4, ALIGNMENT = 256 };

static fsdp_context *open_nodes(int node_size)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size = node_size;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static void *allocate(fsdp_context *ctx, fsdp_buffer_kind kind, size_t bytes)
{
    void *memory = ctx;

    if (fsdp_buffer_alloc(ctx, kind, bytes, &memory) != FSDP_OK) {
        fail_msg("fsdp_buffer_alloc: %s", fsdp_last_error(ctx));
    }
    return memory;
}

static void assert_still_good(fsdp_context *ctx)
{
    int32_t sum = 1;

    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(fsdp_size(ctx), sum);
}

/* Expects the status, the words in its detail, and a context that still works. */
static void assert_failed(fsdp_context *ctx, fsdp_status expected, fsdp_status found, const char *words)
{
    assert_int_equal(expected, found);
    if (strstr(fsdp_last_error(ctx), words) == NULL) {
        fail_msg("'%s' does not say '%s'", fsdp_last_error(ctx), words);
    }
    assert_still_good(ctx);
}

static size_t buffer_bytes(fsdp_context *ctx)
{
    fsdp_memory memory;

    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
    return memory.current[FSDP_MEMORY_BUFFERS];
}

static void assert_zeroed(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(0, memory[i]);
    }
}

/* No two ranks' are alike. */
static size_t uneven_bytes(int rank)
{
    return 17 + (size_t)rank * 5003;
}

/* ---- what they are ------------------------------------------------------------------------------------------------- */

static void each_rank_gets_as_much_as_it_asks_for(void **state)
{
    fsdp_context *ctx  = *state;
    const size_t  mine = uneven_bytes(fsdp_rank(ctx));

    unsigned char *memory = allocate(ctx, FSDP_BUFFER_PER_RANK, mine);
    if (mine > 0) {
        assert_non_null(memory);
        assert_int_equal(0, (uintptr_t)memory % ALIGNMENT);
        assert_zeroed(memory, mine);
        memset(memory, 1, mine);
    }
    assert_int_equal(fsdpi_alloc_size(mine), buffer_bytes(ctx));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    assert_int_equal(0, buffer_bytes(ctx));
    assert_still_good(ctx);
}

static void no_bytes_anywhere_are_no_buffer(void **state)
{
    fsdp_context *ctx = open_nodes(0);

    (void)state;
    for (int kind = FSDP_BUFFER_PER_RANK; kind <= FSDP_BUFFER_PER_NODE; kind++) {
        void *memory = allocate(ctx, (fsdp_buffer_kind)kind, 0);
        assert_null(memory);
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    }
    assert_int_equal(0, buffer_bytes(ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_rank_that_asks_for_nothing_gets_null_and_frees_it_with_its_peers(void **state)
{
    fsdp_context *ctx    = open_nodes(0);
    const bool    asks   = fsdp_rank(ctx) > 0;
    void         *memory = allocate(ctx, FSDP_BUFFER_PER_RANK, asks ? 1000 : 0);

    (void)state;
    const fsdp_status freed = fsdp_buffer_free(ctx, memory);
    const fsdp_status ended = fsdp_finalize(ctx);
    assert_true((memory != NULL) == asks);
    assert_int_equal(FSDP_OK, freed);
    assert_int_equal(FSDP_OK, ended);
}

static void a_buffer_begins_zeroed_also_where_another_one_was(void **state)
{
    fsdp_context *ctx = *state;

    for (int i = 0; i < 3; i++) {
        for (int kind = FSDP_BUFFER_PER_RANK; kind <= FSDP_BUFFER_PER_NODE; kind++) {
            unsigned char *memory = allocate(ctx, (fsdp_buffer_kind)kind, 70001);
            assert_zeroed(memory, 70001);
            assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
            memset(memory, 0xff, 70001);
            assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
        }
    }
}

static void what_a_rank_writes_its_peers_see(void **state)
{
    (void)state;
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        fsdp_context *ctx  = open_nodes(node_size);
        int32_t      *mine = allocate(ctx, FSDP_BUFFER_PER_RANK, 100 * sizeof *mine);
        int           seen = 0;

        mine[99] = 1000 + fsdp_rank(ctx);
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
        for (int r = 0; r < fsdp_size(ctx); r++) {
            void *peer = NULL;
            if (fsdp_buffer_peer(ctx, &mine[99], r, &peer) == FSDP_OK) {
                assert_int_equal(1000 + r, *(int32_t *)peer);
                seen++;
            } else {
                assert_non_null(strstr(fsdp_last_error(ctx), "is not on the node of rank"));
            }
        }
        assert_int_equal(fsdp_node_size(ctx), seen);
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, mine));
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

static void a_rank_sees_itself_as_its_own_peer(void **state)
{
    fsdp_context  *ctx  = *state;
    unsigned char *mine = allocate(ctx, FSDP_BUFFER_PER_RANK, 300);
    void          *peer;

    assert_int_equal(FSDP_OK, fsdp_buffer_peer(ctx, mine + 17, fsdp_rank(ctx), &peer));
    assert_ptr_equal(mine + 17, peer);
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, mine));
}

static void a_place_beyond_the_end_of_a_peers_buffer_is_refused(void **state)
{
    fsdp_context  *ctx  = *state;
    const int      last = fsdp_size(ctx) - 1;
    unsigned char *mine = allocate(ctx, FSDP_BUFFER_PER_RANK, fsdp_rank(ctx) == last ? 4096 : 10);
    void          *peer;

    if (fsdp_rank(ctx) == last && last > 0) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, mine + 11, 0, &peer));
        assert_non_null(strstr(fsdp_last_error(ctx), "offset 11 is beyond the 10 bytes of rank 0"));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, &mine, fsdp_rank(ctx), &peer));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, mine, fsdp_size(ctx), &peer));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, mine, -1, &peer));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, mine, fsdp_rank(ctx), NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, NULL, fsdp_rank(ctx), &peer));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(NULL, mine, fsdp_rank(ctx), &peer));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, mine));
}

static void a_buffer_per_node_is_one_for_its_ranks(void **state)
{
    (void)state;
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        fsdp_context *ctx  = open_nodes(node_size);
        const int     n    = fsdp_node_size(ctx);
        int32_t      *node = allocate(ctx, FSDP_BUFFER_PER_NODE, 64 * sizeof *node);

        assert_int_equal(0, (uintptr_t)node % ALIGNMENT);
        assert_int_equal(fsdpi_alloc_size(64 * sizeof *node / (size_t)n), buffer_bytes(ctx));
        node[fsdp_node_rank(ctx)] = 1 + fsdp_rank(ctx);
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
        int others = 0;
        for (int p = 0; p < n; p++) {
            others += node[p] > 0;
        }
        assert_int_equal(n, others);
        assert_zeroed((unsigned char *)(node + n), (64 - (size_t)n) * sizeof *node);
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, node));
        assert_int_equal(0, buffer_bytes(ctx));
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */

static void bad_arguments_of_one_rank_are_the_error_of_all(void **state)
{
    fsdp_context *ctx  = *state;
    const bool    last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    void         *memory;

    assert_failed(ctx, FSDP_ERR_ARG,
                  fsdp_buffer_alloc(ctx, last ? (fsdp_buffer_kind)7 : FSDP_BUFFER_PER_RANK, 100, &memory),
                  "7 is no kind of buffer");
    assert_failed(ctx, FSDP_ERR_ARG, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, 100, last ? NULL : &memory),
                  "the place for the buffer is NULL");
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_alloc(NULL, FSDP_BUFFER_PER_RANK, 100, &memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_free(NULL, NULL));
    assert_int_equal(0, buffer_bytes(ctx));
}

static void ranks_that_ask_for_different_things_are_told_so(void **state)
{
    fsdp_context *ctx  = *state;
    const bool    last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    void         *memory;

    if (fsdp_size(ctx) == 1) {
        skip();
    }
    assert_failed(ctx, FSDP_ERR_MISMATCH,
                  fsdp_buffer_alloc(ctx, last ? FSDP_BUFFER_PER_NODE : FSDP_BUFFER_PER_RANK, 100, &memory),
                  "one per node");
    assert_failed(ctx, FSDP_ERR_MISMATCH, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_NODE, last ? 100 : 101, &memory),
                  "fsdp_buffer_alloc");
    assert_int_equal(0, buffer_bytes(ctx));
}

static void sizes_that_no_memory_has_are_refused(void **state)
{
    fsdp_context *ctx  = *state;
    const bool    last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    void         *memory;

    assert_failed(ctx, FSDP_ERR_MEMORY, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, last ? SIZE_MAX : 1, &memory), "");
    assert_failed(ctx, FSDP_ERR_MEMORY, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_NODE, SIZE_MAX - 1, &memory), "");
    assert_failed(ctx, FSDP_ERR_MEMORY, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, (size_t)1 << 60, &memory), "");
    assert_int_equal(0, buffer_bytes(ctx));
}

static void what_is_no_buffer_cannot_be_freed(void **state)
{
    fsdp_context  *ctx    = *state;
    unsigned char *memory = allocate(ctx, FSDP_BUFFER_PER_RANK, 1000);
    const bool     last   = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    int            own;

    assert_failed(ctx, FSDP_ERR_ARG, fsdp_buffer_free(ctx, last ? (void *)&own : memory), "no symmetric buffer begins");
    assert_failed(ctx, FSDP_ERR_ARG, fsdp_buffer_free(ctx, last ? memory + 1 : memory), "no symmetric buffer begins");
    assert_int_equal(fsdpi_alloc_size(1000), buffer_bytes(ctx));
    memory[999] = 1;
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    assert_failed(ctx, FSDP_ERR_ARG, fsdp_buffer_free(ctx, memory), "has been freed before");
}

static void ranks_that_free_different_buffers_are_told_so(void **state)
{
    fsdp_context  *ctx    = *state;
    unsigned char *first  = allocate(ctx, FSDP_BUFFER_PER_RANK, 1000);
    unsigned char *second = allocate(ctx, FSDP_BUFFER_PER_RANK, 1000);
    const bool     last   = fsdp_rank(ctx) == fsdp_size(ctx) - 1;

    if (fsdp_size(ctx) > 1) {
        assert_failed(ctx, FSDP_ERR_MISMATCH, fsdp_buffer_free(ctx, last ? first : second), "fsdp_buffer_free");
        assert_failed(ctx, FSDP_ERR_MISMATCH, fsdp_buffer_free(ctx, last ? first : NULL), "fsdp_buffer_free");
    }
    assert_int_equal(2 * fsdpi_alloc_size(1000), buffer_bytes(ctx));
    first[0] = second[999] = 1; /* both are still there */
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, second));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, first));
}

static void a_freed_buffer_is_refused_by_collectives(void **state)
{
    fsdp_context *ctx    = *state;
    const bool    last   = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    int32_t      *memory = allocate(ctx, FSDP_BUFFER_PER_RANK, 1000);
    int32_t       value  = 1;
    fsdp_request *request;

    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    assert_failed(ctx, FSDP_ERR_ARG, fsdp_allreduce(ctx, FSDP_IN_PLACE, last ? memory : &value, 1, FSDP_I32, FSDP_SUM),
                  "has been freed");
    assert_failed(ctx, FSDP_ERR_ARG, fsdp_broadcast(ctx, last ? memory + 7 : &value, 1, FSDP_I32, 0), "has been freed");
    assert_int_equal(FSDP_OK, fsdp_ibroadcast(ctx, last ? memory : &value, 1, FSDP_I32, 0, &request));
    assert_failed(ctx, FSDP_ERR_ARG, fsdp_wait(request), "has been freed");
}

/* As many as that, and the addresses of the first are forgotten. */
static void many_buffers_come_and_go(void **state)
{
    fsdp_context *ctx = *state;

    for (int i = 0; i < 200; i++) {
        unsigned char *memory = allocate(ctx, FSDP_BUFFER_PER_RANK, 100);
        assert_zeroed(memory, 100);
        memset(memory, 1, 100);
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    }
    assert_int_equal(0, buffer_bytes(ctx));
    assert_still_good(ctx);
}

/* ThreadSanitizer has memory of its own in the middle of the addresses. */
#if defined(__SANITIZE_THREAD__)
static const uintptr_t WILD[] = {0x10000, UINTPTR_MAX - 4096};
#else
static const uintptr_t WILD[] = {0x10000, (uintptr_t)1 << 46, UINTPTR_MAX - 4096};
#endif

static void a_wild_pointer_is_refused_by_collectives(void **state)
{
    fsdp_context *ctx       = *state;
    const bool    last      = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    int32_t       value[16] = {1};

    for (size_t i = 0; i < sizeof WILD / sizeof WILD[0]; i++) {
        void *wild = (void *)WILD[i]; /* NOLINT(performance-no-int-to-ptr) */

        assert_failed(ctx, FSDP_ERR_ARG, fsdp_allreduce(ctx, FSDP_IN_PLACE, last ? wild : value, 1, FSDP_I32, FSDP_SUM),
                      "neither host memory");
        assert_failed(ctx, FSDP_ERR_ARG, fsdp_allgather(ctx, last ? wild : &value[15], value, 1, FSDP_I32),
                      "neither host memory");
    }
}

static void an_address_in_the_first_page_is_refused_by_collectives(void **state)
{
    fsdp_context *ctx   = *state;
    const bool    last  = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    int32_t       value = 1;

    assert_failed(ctx, FSDP_ERR_ARG,
                  fsdp_allreduce(ctx, FSDP_IN_PLACE, last ? (void *)8 : &value, 1, FSDP_I32, FSDP_SUM),
                  "neither host memory");
}

/* Of whole pages, so that one begins where another ends. */
static void buffers_that_touch_are_told_apart(void **state)
{
    enum { BUFFERS = 6 };
    fsdp_context *ctx = *state;

    for (int kind = 0; kind < 2; kind++) {
        void *buffers[BUFFERS];

        for (int i = 0; i < BUFFERS; i++) {
            buffers[i] = allocate(ctx, kind == 0 ? FSDP_BUFFER_PER_RANK : FSDP_BUFFER_PER_NODE, (size_t)1 << 20);
        }
        for (int i = 0; i < BUFFERS; i++) {
            assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, buffers[i]));
        }
    }
}

static void a_buffer_left_open_is_a_leak(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    (void)allocate(ctx, FSDP_BUFFER_PER_RANK, 1000);
    (void)allocate(ctx, FSDP_BUFFER_PER_NODE, 1000);
    assert_int_equal(FSDP_ERR_LEAK, fsdp_finalize(ctx));
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- a result that is gathered once per node ------------------------------------------------------------------------ */

static int32_t element(int round, int rank, size_t i)
{
    return round * 1000003 + rank * 10007 + (int32_t)i;
}

static void assert_gathered(const int32_t *full, int round, int size, size_t count)
{
    for (int r = 0; r < size; r++) {
        for (size_t i = 0; i < count; i++) {
            const int32_t found = full[(size_t)r * count + i];
            if (found != element(round, r, i)) {
                fail_msg("round %d, %zu elements each: element %zu of rank %d is %d instead of %d", round, count, i, r,
                         found, element(round, r, i));
            }
        }
    }
}

static void gather_once_per_node(fsdp_context *ctx, int round, size_t count, bool in_place)
{
    const int size = fsdp_size(ctx), rank = fsdp_rank(ctx);
    int32_t  *full = allocate(ctx, FSDP_BUFFER_PER_NODE, (size_t)size * count * sizeof *full);
    int32_t  *mine = allocate(ctx, FSDP_BUFFER_PER_RANK, count * sizeof *mine);
    int32_t  *slot = in_place ? full + (size_t)rank * count : mine;

    for (size_t i = 0; i < count; i++) {
        slot[i] = element(round, rank, i);
    }
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, in_place ? FSDP_IN_PLACE : mine, full, count, FSDP_I32));
    assert_gathered(full, round, size, count);
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, mine));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, full));
}

static void an_allgather_fills_the_buffer_of_each_node(void **state)
{
    static const size_t counts[] = {1, 7, 100, 5003, 300007};

    (void)state;
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        fsdp_context *ctx = open_nodes(node_size);

        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            gather_once_per_node(ctx, 2 * (int)c, counts[c], false);
            gather_once_per_node(ctx, 2 * (int)c + 1, counts[c], true);
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* A rank that is done writes its next part at once: a peer that is not may not undo that. */
static void gather_again_and_again(fsdp_context *ctx, size_t count, int rounds)
{
    const int size = fsdp_size(ctx), rank = fsdp_rank(ctx);
    int32_t  *full = allocate(ctx, FSDP_BUFFER_PER_NODE, (size_t)size * count * sizeof *full);

    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            full[(size_t)rank * count + i] = element(round, rank, i);
        }
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, FSDP_IN_PLACE, full, count, FSDP_I32));
        for (size_t i = 0; i < count; i++) {
            if (full[(size_t)rank * count + i] != element(round, rank, i)) {
                fail_msg("round %d of %d, %zu elements each, nodes of %d: what this rank wrote was overwritten", round,
                         rounds, count, fsdp_node_size(ctx));
            }
        }
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, full));
}

static void a_rank_may_write_its_next_part_as_soon_as_its_allgather_has_ended(void **state)
{
    (void)state;
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        fsdp_context *ctx = open_nodes(node_size);

        gather_again_and_again(ctx, 3, 2000);
        gather_again_and_again(ctx, 1500, 200);
        gather_again_and_again(ctx, 20000, 50);
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* Not under valgrind. */
static bool is_mapped_where_asked(void *place, size_t bytes)
{
    void *memory = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(MAP_FAILED, memory);
    assert_int_equal(0, munmap(memory, bytes));
    return memory == place;
}

/* On some virtual machines huge pages make small pages next to them slow: see lib/node/segment.c. */
static void what_may_have_huge_pages_lies_away_from_other_memory(void **state)
{
    const size_t   bytes = (size_t)5 << 20;
    const intptr_t gib   = (intptr_t)1 << 30;
    fsdp_context  *ctx   = open_nodes(1);
    void          *other = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(MAP_FAILED, other);
    for (int i = 0; is_mapped_where_asked((char *)other - 20 * gib, bytes) && i < 3; i++) {
        void *first = allocate(ctx, FSDP_BUFFER_PER_RANK, bytes), *second = allocate(ctx, FSDP_BUFFER_PER_RANK, bytes);

        assert_true(imaxabs((intptr_t)first - (intptr_t)other) > gib);
        assert_true(imaxabs((intptr_t)second - (intptr_t)other) > gib);
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, first));
        assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, second));
    }
    assert_int_equal(0, munmap(other, bytes));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_gets_as_much_as_it_asks_for),
        cmocka_unit_test(a_buffer_begins_zeroed_also_where_another_one_was),
        cmocka_unit_test(what_a_rank_writes_its_peers_see),
        cmocka_unit_test(a_rank_sees_itself_as_its_own_peer),
        cmocka_unit_test(a_place_beyond_the_end_of_a_peers_buffer_is_refused),
        cmocka_unit_test(a_buffer_per_node_is_one_for_its_ranks),
        cmocka_unit_test(bad_arguments_of_one_rank_are_the_error_of_all),
        cmocka_unit_test(ranks_that_ask_for_different_things_are_told_so),
        cmocka_unit_test(sizes_that_no_memory_has_are_refused),
        cmocka_unit_test(what_is_no_buffer_cannot_be_freed),
        cmocka_unit_test(ranks_that_free_different_buffers_are_told_so),
        cmocka_unit_test(a_freed_buffer_is_refused_by_collectives),
        cmocka_unit_test(many_buffers_come_and_go),
        cmocka_unit_test(a_wild_pointer_is_refused_by_collectives),
        cmocka_unit_test(buffers_that_touch_are_told_apart),
        cmocka_unit_test(a_buffer_left_open_is_a_leak),
        cmocka_unit_test(an_allgather_fills_the_buffer_of_each_node),
        cmocka_unit_test(a_rank_may_write_its_next_part_as_soon_as_its_allgather_has_ended),
        cmocka_unit_test(no_bytes_anywhere_are_no_buffer),
        cmocka_unit_test(a_rank_that_asks_for_nothing_gets_null_and_frees_it_with_its_peers),
        cmocka_unit_test(an_address_in_the_first_page_is_refused_by_collectives),
        cmocka_unit_test(what_may_have_huge_pages_lies_away_from_other_memory),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
