#include "tests/collectives/collective_test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/random.h"
#include "kernels/host/walk.h"
#include "kernels/kernels.h"

enum { GUARD_BYTES = 64, GUARD = 0xa5 };

const size_t COUNTS[] = {0, 1, 2, 3, 5, 17, 64, 97, 1000, 1009, 4099, 20011};
const size_t N_COUNTS = sizeof COUNTS / sizeof COUNTS[0];

/* The order of every reduction: within a node in rank order, then over the nodes. */
static int n_nodes = 1, node_of_rank[64];

static void note_nodes(const fsdp_context *ctx)
{
    const int mine = fsdp_node_index(ctx);

    n_nodes = fsdp_node_count(ctx);
    MPI_Allgather(&mine, 1, MPI_INT, node_of_rank, 1, MPI_INT, MPI_COMM_WORLD);
}

int open_contexts(void **state)
{
    contexts   *opened = calloc(1, sizeof *opened);
    fsdp_config small;

    fsdp_config_init(&small);
    small.message_bytes = 1000;
    small.staging_bytes = 6144; /* as 64 nodes need */
    *state              = opened;
    if (fsdp_init(MPI_COMM_WORLD, NULL, &opened->each[0]) != FSDP_OK ||
        fsdp_init(MPI_COMM_WORLD, &small, &opened->each[1]) != FSDP_OK) {
        return -1;
    }
    note_nodes(opened->each[0]);
    opened->rank = fsdp_rank(opened->each[0]);
    opened->size = fsdp_size(opened->each[0]);
    /* results go past the caches on some ranks and through them on others, whatever the processor */
    atomic_store(&fsdpi_past_favoured, opened->rank % 2 == 0);
    return 0;
}

int close_contexts(void **state)
{
    contexts *opened = *state;
    int       failed = 0;

    for (int i = 0; i < N_CONTEXTS; i++) {
        failed |= fsdp_finalize(opened->each[i]) != FSDP_OK;
    }
    free(opened);
    return failed ? -1 : 0;
}

/* [length of the payload][guard][payload][guard] */
void *guarded_alloc(size_t count, fsdp_dtype dtype)
{
    const size_t   bytes = count * fsdp_dtype_size(dtype);
    unsigned char *block = malloc(bytes + 3 * GUARD_BYTES);

    assert_non_null(block);
    memset(block, GUARD, bytes + 3 * GUARD_BYTES);
    memcpy(block, &bytes, sizeof bytes);
    return block + 2 * GUARD_BYTES;
}

void guarded_free(void *buffer)
{
    unsigned char *payload = buffer;
    size_t         bytes;

    memcpy(&bytes, payload - 2 * GUARD_BYTES, sizeof bytes);
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(GUARD, payload[-1 - (ptrdiff_t)i]);
        assert_int_equal(GUARD, payload[bytes + i]);
    }
    free(payload - 2 * GUARD_BYTES);
}

/* Between 0.5 and 1.5, so that no product of eight ranks is out of the range of any type. */
static double contribution(int rank, size_t i)
{
    return 0.5 + fsdp_random_uniform(42, (uint64_t)rank, i);
}

static void contribute_float(void *buffer, int rank, size_t begin, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        const double value = contribution(rank, begin + i);
        fsdpi_kernels_scalar.cast((char *)buffer + i * fsdp_dtype_size(dtype), dtype, &value, FSDP_F64, 1);
    }
}

void contribute(void *buffer, int rank, size_t begin, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64 || dtype == FSDP_F32 || dtype == FSDP_BF16 || dtype == FSDP_F16) {
        contribute_float(buffer, rank, begin, count, dtype);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = fsdp_random_bits(42, (uint64_t)rank, begin + i);
        memcpy((char *)buffer + i * fsdp_dtype_size(dtype), &bits, fsdp_dtype_size(dtype)); /* little endian */
    }
}

static double combine_f64(double a, double b, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return a + b;
    case FSDP_MIN:
        return a < b ? a : b;
    case FSDP_MAX:
        return a > b ? a : b;
    case FSDP_PROD:
        return a * b;
    }
    return NAN;
}

/* Each step in double, rounded to float: what one float operation gives (the extra precision is more than twice). */
static float combine_f32(float a, float b, fsdp_redop op)
{
    return (float)combine_f64((double)a, (double)b, op);
}

static int64_t combine_i64(int64_t a, int64_t b, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case FSDP_MIN:
        return a < b ? a : b;
    case FSDP_MAX:
        return a > b ? a : b;
    case FSDP_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    }
    return 0;
}

static double f64_of_node(int node, int size, size_t i, fsdp_redop op)
{
    double sum   = 0;
    bool   first = true;

    for (int r = 0; r < size; r++) {
        double next;
        if (node_of_rank[r] == node) {
            contribute(&next, r, i, 1, FSDP_F64);
            sum   = first ? next : combine_f64(sum, next, op);
            first = false;
        }
    }
    return sum;
}

static void reduce_f64_element(void *result, int size, size_t i, fsdp_redop op)
{
    double sum = f64_of_node(0, size, i, op);

    for (int m = 1; m < n_nodes; m++) {
        sum = combine_f64(sum, f64_of_node(m, size, i, op), op);
    }
    sum = op == FSDP_AVG ? sum / size : sum;
    memcpy(result, &sum, sizeof sum);
}

/* Rounds to a type of 16 bits, or not at all. */
static float rounded(float value, fsdp_dtype dtype)
{
    unsigned char element[4];

    fsdpi_kernels_scalar.cast(element, dtype, &value, FSDP_F32, 1);
    fsdpi_kernels_scalar.cast(&value, FSDP_F32, element, dtype, 1);
    return value;
}

/* f32, bf16 and f16: accumulated in f32, rounded once per level. */
static float float_of_node(int node, int size, size_t i, fsdp_dtype dtype, fsdp_redop op)
{
    float sum   = 0.0F;
    bool  first = true;

    for (int r = 0; r < size; r++) {
        unsigned char element[4];
        float         next;
        if (node_of_rank[r] == node) {
            contribute(element, r, i, 1, dtype);
            fsdpi_kernels_scalar.cast(&next, FSDP_F32, element, dtype, 1);
            sum   = first ? next : combine_f32(sum, next, op);
            first = false;
        }
    }
    return n_nodes > 1 ? rounded(sum, dtype) : sum;
}

static void reduce_float_element(void *result, int size, size_t i, fsdp_dtype dtype, fsdp_redop op)
{
    float sum = float_of_node(0, size, i, dtype, op);

    for (int m = 1; m < n_nodes; m++) {
        sum = combine_f32(sum, float_of_node(m, size, i, dtype, op), op);
    }
    sum = op == FSDP_AVG ? (float)((double)sum / size) : sum;
    fsdpi_kernels_scalar.cast(result, dtype, &sum, FSDP_F32, 1);
}

/* The sign-extended value of an integer element; results wrap to its width each time. */
static int64_t widened(const void *element, fsdp_dtype dtype)
{
    int64_t i64;
    int32_t i32;
    uint8_t u8;

    if (dtype == FSDP_I64) {
        memcpy(&i64, element, sizeof i64);
        return i64;
    }
    if (dtype == FSDP_I32) {
        memcpy(&i32, element, sizeof i32);
        return i32;
    }
    memcpy(&u8, element, sizeof u8);
    return u8;
}

static void reduce_integer_element(void *result, int size, size_t i, fsdp_dtype dtype, fsdp_redop op)
{
    const size_t width = fsdp_dtype_size(dtype);
    int64_t      sum   = 0;

    for (int r = 0; r < size; r++) {
        int64_t element = 0;
        contribute(&element, r, i, 1, dtype);
        const int64_t next = widened(&element, dtype);
        sum                = r == 0 ? next : combine_i64(sum, next, op);
        memcpy(result, &sum, width);
        sum = widened(result, dtype);
    }
    sum = op == FSDP_AVG ? sum / size : sum;
    memcpy(result, &sum, width);
}

void reduce_serially(void *result, int size, size_t begin, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    for (size_t i = 0; i < count; i++) {
        void *element = (char *)result + i * fsdp_dtype_size(dtype);

        if (dtype == FSDP_F64) {
            reduce_f64_element(element, size, begin + i, op);
        } else if (dtype == FSDP_F32 || dtype == FSDP_BF16 || dtype == FSDP_F16) {
            reduce_float_element(element, size, begin + i, dtype, op);
        } else {
            reduce_integer_element(element, size, begin + i, dtype, op);
        }
    }
}

void assert_same(const void *expected, const void *found, size_t count, fsdp_dtype dtype)
{
    const size_t width = fsdp_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        if (memcmp((const char *)expected + i * width, (const char *)found + i * width, width) != 0) {
            fail_msg("element %zu of %zu (%s) differs from the reference", i, count, fsdp_dtype_name(dtype));
        }
    }
}

size_t uneven_counts(size_t *counts, int size, size_t scale)
{
    size_t sum = 0;

    for (int r = 0; r < size; r++) {
        counts[r] = r % 3 == 1 ? 0 : scale * (size_t)(r + 1) + (size_t)r;
        sum += counts[r];
    }
    return sum;
}
