/*
 * What a rank takes from the records of thousands of made-up nodes, in as many steps as there is room for operands: to the bit
 * what one reduction of all of them makes, and every part of a gather.
 */
#include <stdlib.h>
#include <string.h>

#include "collectives/blocks/take.h"
#include "collectives/blocks/windows.h"
#include "lib/context/context.h"
#include "tests/support/unit_test.h"

enum { MOST_COUNT = 600 };

static fsdp_context world;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    return x ^ x >> 27;
}

static uint64_t alone(int rank, int size)
{
    (void)size;
    return (uint64_t)rank;
}

static uint64_t scattered(int rank, int size)
{
    return mix((uint64_t)rank + 1) % (uint64_t)(size / 2);
}

/* A world seen by the first rank from the middle on that is alone on its node. `area`: BYTES for the records. */
static void make_world(uint64_t (*host)(int rank, int size), int size, size_t area)
{
    uint64_t *scratch = malloc(fsdpi_nodes_scratch_bytes(size));
    void     *memory  = malloc(fsdpi_nodes_bytes(size));

    assert_true(scratch != NULL && memory != NULL);
    memset(&world, 0, sizeof world);
    world.size = size;
    world.rank = size / 2 - 1;
    do {
        world.rank++;
        for (int r = 0; r < size; r++) {
            scratch[r] = host(r, size);
        }
        fsdpi_nodes_divide(size, world.rank, 0, scratch, memory, &world.nodes);
    } while (world.nodes.size > 1);
    free(scratch);

    fsdpi_mailbox *box = &world.lanes[FSDPI_LANE_SHORT].box;
    box->nodes         = &world.nodes;
    box->areas         = calloc(1, sizeof *box->areas);
    box->areas[0]      = malloc(area);
    box->rest_bytes    = area;
    assert_non_null(box->areas[0]);
    world.lanes[FSDPI_LANE_SHORT].exchange = (fsdpi_exchange){.nodes = &world.nodes, .box = box};

    world.kernels             = fsdpi_kernels_find("auto");
    world.operands            = malloc((size_t)fsdpi_operands(size) * sizeof *world.operands);
    world.machine.cache_bytes = (size_t)1 << 30;
    assert_non_null(world.operands);
    assert_true(world.nodes.count > fsdpi_operands(size));
}

static void release_world(void)
{
    free(world.nodes.memory);
    free(world.lanes[FSDPI_LANE_SHORT].box.areas[0]);
    free(world.lanes[FSDPI_LANE_SHORT].box.areas);
    free(world.operands);
}

/* The records of all nodes, in the order in which this rank's leader has them; what is in them, by `fill`. */
static void write_records(size_t (*fill)(int node, unsigned char *payload))
{
    unsigned char *at = fsdpi_rest_of(&world.lanes[FSDPI_LANE_SHORT].box, 0);

    for (int place = 0; place < world.nodes.count; place++) {
        const int          node = fsdpi_exchange_node(&world.lanes[FSDPI_LANE_SHORT].exchange, place);
        fsdpi_record_head *head = (fsdpi_record_head *)(void *)at;

        memset(head, 0, sizeof *head);
        head->bytes = fill(node, (unsigned char *)(head + 1));
        at += fsdpi_record_bytes(head);
    }
}

/* ---- reductions ---------------------------------------------------------------------------------------------------- */

static fsdp_dtype dtype;
static size_t     count;

/* Sums of such numbers depend on the order of their terms. */
static float value(int node, size_t i)
{
    return (float)((double)(mix((uint64_t)node * 1000 + i) % 2000001) / 1e6 - 0.9);
}

static size_t fill_values(int node, unsigned char *payload)
{
    float values[MOST_COUNT];

    for (size_t i = 0; i < count; i++) {
        values[i] = value(node, i);
    }
    if (dtype == FSDP_I32) {
        memcpy(payload, values, count * sizeof *values); /* any bits are a number */
    } else {
        world.kernels->cast(payload, dtype, values, FSDP_F32, count);
    }
    return count * fsdp_dtype_size(dtype);
}

static void check_reduction(fsdp_redop op)
{
    const size_t      bytes = count * fsdp_dtype_size(dtype), n = (size_t)world.nodes.count;
    unsigned char    *inputs = malloc(n * bytes), *result = malloc(bytes), *expected = malloc(bytes);
    const void      **operands = malloc(n * sizeof *operands);
    fsdp_request      request  = {.ctx  = &world,
                                  .lane = &world.lanes[FSDPI_LANE_SHORT],
                                  .call = {.width = fsdp_dtype_size(dtype), .dtype = dtype, .op = op, .count = count}};
    fsdpi_published   from     = {.request = &request};
    const fsdpi_block block    = fsdpi_whole_block(&request, FSDPI_COMBINE);

    assert_true(inputs != NULL && result != NULL && expected != NULL && operands != NULL);
    for (int m = 0; m < world.nodes.count; m++) {
        operands[m] = inputs + (size_t)m * bytes;
        (void)fill_values(m, inputs + (size_t)m * bytes);
    }
    world.kernels->reduce(expected, operands, n, count, dtype, op, (size_t)world.size);
    request.call.out = result;
    fsdpi_take(&from, FSDPI_COMBINE, &block);
    assert_memory_equal(expected, result, bytes);
    free(inputs);
    free(result);
    free(expected);
    free(operands);
}

static void reductions_have_the_bits_of_a_single_one(void **state)
{
    static const fsdp_dtype DTYPES[] = {FSDP_F32, FSDP_F64, FSDP_BF16, FSDP_F16, FSDP_I32};
    static const fsdp_redop OPS[]    = {FSDP_SUM, FSDP_AVG, FSDP_MIN};
    static const size_t     COUNTS[] = {1, 17, MOST_COUNT};

    (void)state;
    make_world(alone, 5000, 5000 * (sizeof(fsdpi_record_head) + MOST_COUNT * sizeof(double) + 8));
    for (size_t d = 0; d < sizeof DTYPES / sizeof DTYPES[0]; d++) {
        for (size_t c = 0; c < sizeof COUNTS / sizeof COUNTS[0]; c++) {
            dtype = DTYPES[d];
            count = COUNTS[c];
            write_records(fill_values);
            for (size_t o = 0; o < sizeof OPS / sizeof OPS[0]; o++) {
                check_reduction(OPS[o]);
            }
        }
    }
    release_world();
}

/* ---- gathers ------------------------------------------------------------------------------------------------------- */

static size_t *counts;

static int32_t element(int rank, size_t i)
{
    return rank * 8 + (int32_t)i;
}

static size_t fill_parts(int node, unsigned char *payload)
{
    int32_t *to = (int32_t *)(void *)payload;
    size_t   n  = 0;

    for (int p = 0; p < fsdpi_node_size(&world.nodes, node); p++) {
        const int rank = fsdpi_rank_at(&world.nodes, node, p);
        for (size_t i = 0; i < counts[rank]; i++) {
            to[n++] = element(rank, i);
        }
    }
    return n * sizeof(int32_t);
}

static void every_part_of_a_gather_comes_from_its_rank(void **state)
{
    enum { SIZE = 9000, MOST = 5 };
    int32_t *result, own[MOST];
    size_t   whole = 0, at = 0;

    (void)state;
    make_world(scattered, SIZE, SIZE * (sizeof(fsdpi_record_head) + (MOST + 1) * sizeof(int32_t)));
    counts = calloc(SIZE, sizeof *counts);
    for (int r = 0; r < SIZE; r++) {
        counts[r] = mix((uint64_t)r) % (MOST + 1);
        whole += counts[r];
    }
    for (size_t i = 0; i < counts[world.rank]; i++) {
        own[i] = element(world.rank, i);
    }
    write_records(fill_parts);
    result = calloc(whole, sizeof *result);

    fsdp_request      request = {.ctx  = &world,
                                 .lane = &world.lanes[FSDPI_LANE_SHORT],
                                 .call = {.width    = sizeof(int32_t),
                                          .dtype    = FSDP_I32,
                                          .in       = own,
                                          .out      = result,
                                          .whole    = whole,
                                          .counts   = counts,
                                          .division = FSDPI_DIVISION_COUNTS}};
    fsdpi_published   from    = {.request = &request};
    const fsdpi_block block   = fsdpi_whole_block(&request, FSDPI_GATHER);
    fsdpi_take(&from, FSDPI_GATHER, &block);
    for (int r = 0; r < SIZE; r++) {
        for (size_t i = 0; i < counts[r]; i++) {
            assert_int_equal(element(r, i), result[at++]);
        }
    }
    free(result);
    free(counts);
    release_world();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_have_the_bits_of_a_single_one),
        cmocka_unit_test(every_part_of_a_gather_comes_from_its_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
