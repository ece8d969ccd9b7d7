/*
 * Blocking collectives of MPI as any program calls them, in C: types, operations, roots, in place, communicators, counts of 0,
 * lists with gaps. Knows nothing of libfsdp; what comes out is compared with what is computed here, by hand.
 *
 *   conformance [single|funneled|serialized|multiple]     the thread level (single: MPI_Init)
 *
 * Rank 0 prints a line `called NAME COUNT` for each collective. Exits with 1 if anything was wrong, after saying what.
 */
#include <complex.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3001, GAP = 3, SHORT_LIVED = 24 };

static const int COUNTS[] = {0, 1, 7, MOST};
enum { N_COUNTS = sizeof COUNTS / sizeof COUNTS[0] };

/* ---- what is counted and what is wrong -------------------------------------------------------------------------------- */

/* clang-format off */
static const char *const NAMES[] = {"allgather", "allgatherv", "allreduce", "reduce_scatter", "reduce_scatter_block", "bcast",
                                    "reduce",    "alltoall",   "alltoallv", "barrier",        "iallgather",           "iallgatherv",
                                    "iallreduce", "ireduce_scatter", "ireduce_scatter_block", "ibcast", "ireduce", "ialltoall",
                                    "ialltoallv", "ibarrier", "persistent"};
enum { ALLGATHER, ALLGATHERV, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, BCAST, REDUCE, ALLTOALL, ALLTOALLV, BARRIER,
       IALLGATHER, IALLGATHERV, IALLREDUCE, IREDUCE_SCATTER, IREDUCE_SCATTER_BLOCK, IBCAST, IREDUCE, IALLTOALL, IALLTOALLV,
       IBARRIER, PERSISTENT, N_NAMES };
/* clang-format on */

static long calls[N_NAMES];
static int  wrong, world_rank;

#define COUNTED(which, call) (calls[which]++, (call))
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition) && wrong++ < 10) {                                                                            \
            fprintf(stderr, "rank %d, line %d: " #condition ": ", world_rank, __LINE__);                               \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputs("\n", stderr);                                                                                       \
        }                                                                                                              \
    } while (0)
#define OK(which, call) CHECK(COUNTED(which, call) == MPI_SUCCESS, "an error")

/* ---- types ------------------------------------------------------------------------------------------------------------ */

/* Name, C type. Sums of a few small whole numbers are exact in all of them. */
#define TYPES(X)                                                                                                       \
    X(MPI_INT, int)                                                                                                    \
    X(MPI_UNSIGNED, unsigned)                                                                                          \
    X(MPI_LONG, long)                                                                                                  \
    X(MPI_UNSIGNED_LONG, unsigned long)                                                                                \
    X(MPI_LONG_LONG, long long)                                                                                        \
    X(MPI_UNSIGNED_LONG_LONG, unsigned long long)                                                                      \
    X(MPI_SHORT, short)                                                                                                \
    X(MPI_UNSIGNED_SHORT, unsigned short)                                                                              \
    X(MPI_SIGNED_CHAR, signed char)                                                                                    \
    X(MPI_UNSIGNED_CHAR, unsigned char)                                                                                \
    X(MPI_INT8_T, int8_t)                                                                                              \
    X(MPI_INT16_T, int16_t)                                                                                            \
    X(MPI_INT32_T, int32_t)                                                                                            \
    X(MPI_INT64_T, int64_t)                                                                                            \
    X(MPI_UINT8_T, uint8_t)                                                                                            \
    X(MPI_UINT16_T, uint16_t)                                                                                          \
    X(MPI_UINT32_T, uint32_t)                                                                                          \
    X(MPI_UINT64_T, uint64_t)                                                                                          \
    X(MPI_AINT, MPI_Aint)                                                                                              \
    X(MPI_COUNT, MPI_Count)                                                                                            \
    X(MPI_FLOAT, float)                                                                                                \
    X(MPI_DOUBLE, double)                                                                                              \
    X(MPI_LONG_DOUBLE, long double)                                                                                    \
    X(MPI_C_FLOAT_COMPLEX, float complex)                                                                              \
    X(MPI_C_DOUBLE_COMPLEX, double complex)

enum {
#define INDEX_OF(type, c) AT_##type,
    TYPES(INDEX_OF)
#undef INDEX_OF
        N_TYPES
};

static MPI_Datatype type_at(int at)
{
    switch (at) {
#define TYPE_OF(type, c)                                                                                               \
    case AT_##type:                                                                                                    \
        return type;
        TYPES(TYPE_OF)
#undef TYPE_OF
    default:
        return MPI_DATATYPE_NULL;
    }
}

static void put(int at, void *buffer, size_t i, double value)
{
    switch (at) {
#define PUT(type, c)                                                                                                   \
    case AT_##type:                                                                                                    \
        ((c *)buffer)[i] = (c)value;                                                                                   \
        break;
        TYPES(PUT)
#undef PUT
    default:
        break;
    }
}

static double get(int at, const void *buffer, size_t i)
{
    switch (at) {
#define GET(type, c)                                                                                                   \
    case AT_##type:                                                                                                    \
        return (double)((const c *)buffer)[i];
        TYPES(GET)
#undef GET
    default:
        return -1;
    }
}

static int is_complex(int at)
{
    return at == AT_MPI_C_FLOAT_COMPLEX || at == AT_MPI_C_DOUBLE_COMPLEX;
}

/* What rank r holds at i: 1 or 2, so that products over 8 ranks fit into a byte. */
static double value(int r, size_t i)
{
    return (double)(1 + ((size_t)r + i) % 2);
}

enum { SUM, PROD, MAX, MIN, N_OPS };

static MPI_Op op_at(int op)
{
    return op == SUM ? MPI_SUM : op == PROD ? MPI_PROD : op == MAX ? MPI_MAX : MPI_MIN;
}

static double reduced(int op, int size, size_t i)
{
    double result = value(0, i);

    for (int r = 1; r < size; r++) {
        const double v = value(r, i);

        result = op == SUM    ? result + v
                 : op == PROD ? result * v
                 : op == MAX  ? (v > result ? v : result)
                              : (v < result ? v : result);
    }
    return result;
}

static void fill(int at, void *buffer, int r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(at, buffer, i, value(r, i));
    }
}

/* ---- reductions --------------------------------------------------------------------------------------------------------- */

enum { ROOM = 16 * 8 * MOST }; /* of the largest element, for 8 ranks */
static char in[ROOM], out[ROOM];

/* Elements `begin` to `begin + count` of the reduced vector are at `result`. */
static void check_reduced(int at, int op, int size, const void *result, size_t begin, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (get(at, result, i) != reduced(op, size, begin + i)) {
            CHECK(0, "%s, type %d, operation %d, at %zu of %zu: %g", what, at, op, i, count, get(at, result, i));
            return;
        }
    }
}

static void check_allreduce(MPI_Comm comm, int rank, int size, int at, int op, int count)
{
    fill(at, in, rank, (size_t)count);
    memset(out, 99, sizeof out);
    OK(ALLREDUCE, MPI_Allreduce(in, out, count, type_at(at), op_at(op), comm));
    check_reduced(at, op, size, out, 0, (size_t)count, "allreduce");
    fill(at, out, rank, (size_t)count);
    OK(ALLREDUCE, MPI_Allreduce(MPI_IN_PLACE, out, count, type_at(at), op_at(op), comm));
    check_reduced(at, op, size, out, 0, (size_t)count, "allreduce in place");
}

/* MPICH 4.0 takes MPI_IN_PLACE for an address in a longer reduce to another rank than the first. */
#if defined(MPICH_VERSION)
enum { REDUCE_IN_PLACE_ROOTS = 1 };
#else
enum { REDUCE_IN_PLACE_ROOTS = 8 };
#endif

static void check_reduce(MPI_Comm comm, int rank, int size, int at, int op, int count)
{
    for (int root = 0; root < size; root++) {
        fill(at, in, rank, (size_t)count);
        OK(REDUCE, MPI_Reduce(in, out, count, type_at(at), op_at(op), root, comm));
        check_reduced(at, op, size, out, 0, rank == root ? (size_t)count : 0, "reduce");
        if (root >= REDUCE_IN_PLACE_ROOTS) {
            continue;
        }
        fill(at, rank == root ? out : in, rank, (size_t)count);
        OK(REDUCE, MPI_Reduce(rank == root ? MPI_IN_PLACE : in, out, count, type_at(at), op_at(op), root, comm));
        check_reduced(at, op, size, out, 0, rank == root ? (size_t)count : 0, "reduce in place");
    }
}

static void check_reduce_scatter(MPI_Comm comm, int rank, int size, int at, int op, int count)
{
    int    counts[8];
    size_t all = 0, begin = 0;

    for (int r = 0; r < size; r++) {
        counts[r] = r % 2 == 1 ? 0 : count / size + r;
        begin += r < rank ? (size_t)counts[r] : 0;
        all += (size_t)counts[r];
    }
    fill(at, in, rank, all);
    OK(REDUCE_SCATTER, MPI_Reduce_scatter(in, out, counts, type_at(at), op_at(op), comm));
    check_reduced(at, op, size, out, begin, (size_t)counts[rank], "reduce_scatter");
    fill(at, out, rank, all);
    OK(REDUCE_SCATTER, MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, type_at(at), op_at(op), comm));
    check_reduced(at, op, size, out, begin, (size_t)counts[rank], "reduce_scatter in place");

    const size_t each = (size_t)(count / size);
    fill(at, in, rank, each * (size_t)size);
    OK(REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block(in, out, (int)each, type_at(at), op_at(op), comm));
    check_reduced(at, op, size, out, each * (size_t)rank, each, "reduce_scatter_block");
    fill(at, out, rank, each * (size_t)size);
    OK(REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block(MPI_IN_PLACE, out, (int)each, type_at(at), op_at(op), comm));
    check_reduced(at, op, size, out, each * (size_t)rank, each, "reduce_scatter_block in place");
}

static void check_reductions(MPI_Comm comm, int rank, int size, int few)
{
    for (int at = 0; at < N_TYPES; at += few ? 5 : 1) {
        for (int op = 0; op < N_OPS; op++) {
            if (is_complex(at) && op > PROD) {
                continue; /* of complex numbers none is the largest */
            }
            for (int c = 0; c < N_COUNTS; c++) {
                check_allreduce(comm, rank, size, at, op, COUNTS[c]);
                check_reduce_scatter(comm, rank, size, at, op, COUNTS[c]);
            }
            check_reduce(comm, rank, size, at, op, COUNTS[2 + at % 2]);
        }
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): MPI says how it is called */
static void add_ints(void *a, void *b, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int *)b)[i] += ((const int *)a)[i];
    }
}

/* Operations that MPI alone has. */
static void check_other_operations(MPI_Comm comm, int rank, int size)
{
    struct {
        double value;
        int    where;
    } mine = {.value = -rank, .where = rank}, least = {.value = 0, .where = -1};
    int    one = 1, result = 0;
    MPI_Op op;

    MPI_Op_create(add_ints, 1, &op);
    OK(ALLREDUCE, MPI_Allreduce(&one, &result, 1, MPI_INT, op, comm));
    CHECK(result == size, "%d by an operation of the program's own", result);
    MPI_Op_free(&op);
    OK(ALLREDUCE, MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm));
    CHECK(least.where == size - 1 && least.value == 1 - size, "%d", least.where);
    one = 1 << rank;
    OK(ALLREDUCE, MPI_Allreduce(&one, &result, 1, MPI_INT, MPI_BOR, comm));
    CHECK(result == (1 << size) - 1, "%d", result);
    OK(ALLREDUCE, MPI_Allreduce(&one, &result, 1, MPI_INT, MPI_LAND, comm));
    CHECK(result == 1, "%d", result);
}

/* ---- moves -------------------------------------------------------------------------------------------------------------- */

/* Byte i of what rank r holds. */
static char byte_of(int r, size_t i)
{
    return (char)(31 * r + (int)(i % 113));
}

static void fill_bytes(char *buffer, int r, size_t begin, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        buffer[i] = byte_of(r, begin + i);
    }
}

static void check_bytes(const char *buffer, int r, size_t begin, size_t bytes, const char *what)
{
    for (size_t i = 0; i < bytes; i++) {
        if (buffer[i] != byte_of(r, begin + i)) {
            CHECK(0, "%s: byte %zu of rank %d's %zu", what, i, r, bytes);
            return;
        }
    }
}

/* Types of 8 bytes without gaps, as ranks may name them differently for one call. */
static MPI_Datatype eight_bytes(int which, MPI_Datatype made[3])
{
    switch (which % 5) {
    case 0:
        return MPI_DOUBLE;
    case 1:
        return MPI_C_FLOAT_COMPLEX;
    default:
        return made[which % 5 - 2];
    }
}

static void check_broadcast(MPI_Comm comm, int rank, int size, MPI_Datatype type, int bytes_of_type)
{
    for (int root = 0; root < size; root++) {
        for (int c = 0; c < N_COUNTS; c++) {
            const size_t bytes = (size_t)COUNTS[c] * (size_t)bytes_of_type;

            memset(out, 0, bytes + 1);
            fill_bytes(out, root, 0, rank == root ? bytes : 0);
            OK(BCAST, MPI_Bcast(out, COUNTS[c], type, root, comm));
            check_bytes(out, root, 0, bytes, "bcast");
            CHECK(out[bytes] == 0, "written behind the end");
        }
    }
}

static void check_allgather(MPI_Comm comm, int rank, int size, MPI_Datatype type, int count)
{
    const size_t each = 8 * (size_t)count;

    fill_bytes(in, rank, 0, each);
    memset(out, 0, sizeof out);
    OK(ALLGATHER, MPI_Allgather(in, count, type, out, count, type, comm));
    for (int r = 0; r < size; r++) {
        check_bytes(out + each * (size_t)r, r, 0, each, "allgather");
    }
    memset(out, 0, sizeof out);
    fill_bytes(out + each * (size_t)rank, rank, 0, each);
    OK(ALLGATHER, MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, type, comm));
    for (int r = 0; r < size; r++) {
        check_bytes(out + each * (size_t)r, r, 0, each, "allgather in place");
    }
}

/* Parts of different length: one after the other, with gaps, or backwards. */
static void check_allgatherv(MPI_Comm comm, int rank, int size, MPI_Datatype type, int count, int gap, int backwards)
{
    int counts[8], places[8], place = 0;

    for (int i = 0; i < size; i++) {
        const int r = backwards ? size - 1 - i : i;

        counts[r] = r == 1 ? 0 : count / size + r;
        places[r] = place;
        place += counts[r] + gap;
    }
    for (int placed = 0; placed < 2; placed++) {
        char *mine = placed ? out + 8 * (size_t)places[rank] : in;

        memset(out, 77, sizeof out);
        fill_bytes(mine, rank, 0, 8 * (size_t)counts[rank]);
        OK(ALLGATHERV,
           MPI_Allgatherv(placed ? MPI_IN_PLACE : mine, counts[rank], type, out, counts, places, type, comm));
        for (int r = 0; r < size; r++) {
            const char *part = out + 8 * (size_t)places[r];

            check_bytes(part, r, 0, 8 * (size_t)counts[r], "allgatherv");
            CHECK(gap == 0 || part[8 * (size_t)counts[r]] == 77, "written between two parts");
        }
    }
}

static void check_alltoall(MPI_Comm comm, int rank, int size, MPI_Datatype type, int count)
{
    const size_t each = 8 * (size_t)count / (size_t)size / 8 * 8, all = each * (size_t)size;

    for (int placed = 0; placed < 2; placed++) {
        memset(out, 0, sizeof out);
        fill_bytes(placed ? out : in, rank, 0, all);
        OK(ALLTOALL, MPI_Alltoall(placed ? MPI_IN_PLACE : in, (int)each / 8, type, out, (int)each / 8, type, comm));
        for (int r = 0; r < size; r++) {
            check_bytes(out + each * (size_t)r, r, each * (size_t)rank, each,
                        placed ? "alltoall in place" : "alltoall");
        }
    }
}

/* What rank a sends rank b, in elements. */
static int sent(int a, int b, int count)
{
    return (a + b) % 3 == 0 ? 0 : count / 8 + (a + 1) * (b + 1) % 5;
}

static void check_alltoallv(MPI_Comm comm, int rank, int size, MPI_Datatype type, int count)
{
    int in_counts[8], in_places[8], out_counts[8], out_places[8], in_end = 0, out_end = 0;

    for (int i = 0; i < size; i++) {
        const int r = size - 1 - i; /* blocks go out backwards, and come in with gaps between them */

        in_counts[r] = sent(rank, r, count);
        in_places[r] = in_end;
        in_end += in_counts[r] + 1;
        out_counts[i] = sent(i, rank, count);
        out_places[i] = out_end;
        out_end += out_counts[i] + GAP;
    }
    memset(out, 77, sizeof out);
    for (int r = 0; r < size; r++) {
        fill_bytes(in + 8 * (size_t)in_places[r], rank + 7 * r, 0, 8 * (size_t)in_counts[r]);
    }
    OK(ALLTOALLV, MPI_Alltoallv(in, in_counts, in_places, type, out, out_counts, out_places, type, comm));
    for (int r = 0; r < size; r++) {
        const char *block = out + 8 * (size_t)out_places[r];

        check_bytes(block, r + 7 * rank, 0, 8 * (size_t)out_counts[r], "alltoallv");
        CHECK(block[8 * (size_t)out_counts[r]] == 77, "written behind a block");
    }
}

/* In place, where each two ranks send each other as much. */
static void check_alltoallv_in_place(MPI_Comm comm, int rank, int size, MPI_Datatype type, int count)
{
    int counts[8], places[8], end = 0;

    for (int r = 0; r < size; r++) {
        counts[r] = (rank + r) % 3 == 0 ? 0 : count / 8 + rank + r;
        places[r] = end;
        end += counts[r] + GAP;
    }
    memset(out, 77, sizeof out);
    for (int r = 0; r < size; r++) {
        fill_bytes(out + 8 * (size_t)places[r], rank + 7 * r, 0, 8 * (size_t)counts[r]);
    }
    OK(ALLTOALLV, MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, counts, places, type, comm));
    for (int r = 0; r < size; r++) {
        const char *block = out + 8 * (size_t)places[r];

        check_bytes(block, r + 7 * rank, 0, 8 * (size_t)counts[r], "alltoallv in place");
        CHECK(block[8 * (size_t)counts[r]] == 77, "written behind a block");
    }
}

static void check_moves(MPI_Comm comm, int rank, int size, MPI_Datatype made[3])
{
    for (int round = 0; round < 5; round++) {
        MPI_Datatype type = eight_bytes(rank + round, made), same = eight_bytes(round, made);

        check_broadcast(comm, rank, size, type, 8);
        for (int c = 0; c < N_COUNTS; c++) {
            check_allgather(comm, rank, size, type, COUNTS[c]);
            check_allgatherv(comm, rank, size, same, COUNTS[c], 0, 0);
            check_allgatherv(comm, rank, size, type, COUNTS[c], GAP, 0);
            check_allgatherv(comm, rank, size, type, COUNTS[c], 0, 1);
            check_alltoall(comm, rank, size, type, COUNTS[c]);
            check_alltoallv(comm, rank, size, type, COUNTS[c]);
            check_alltoallv_in_place(comm, rank, size, type, COUNTS[c]);
        }
    }
    check_broadcast(comm, rank, size, MPI_CHAR, 1);
    check_broadcast(comm, rank, size, MPI_BYTE, 1);
    check_broadcast(comm, rank, size, MPI_SHORT, 2);
    check_broadcast(comm, rank, size, MPI_FLOAT, 4);
    check_broadcast(comm, rank, size, MPI_LONG_DOUBLE, sizeof(long double));
}

/* Every other element on odd ranks, and the same data without gaps on even ones; a type whose parts are not in order. */
static void check_gaps(MPI_Comm comm, int rank, int size)
{
    const int    places[2] = {1, 0}, lengths[2] = {1, 1};
    MPI_Datatype every_other, swapped;
    double       held[200], two[2] = {1, 2};

    MPI_Type_vector(100, 1, 2, MPI_DOUBLE, &every_other);
    MPI_Type_commit(&every_other);
    for (int root = 0; root < size; root++) {
        const int step = rank % 2 == 1 ? 2 : 1;

        for (int i = 0; i < 200; i++) {
            held[i] = rank == root && i < 100 * step ? i / step : -1;
        }
        OK(BCAST, MPI_Bcast(held, step == 2 ? 1 : 100, step == 2 ? every_other : MPI_DOUBLE, root, comm));
        for (int i = 0; i < 100; i++) {
            CHECK(held[i * step] == i && (step == 1 || rank == root || held[2 * i + 1] == -1), "root %d, element %d",
                  root, i);
        }
    }
    MPI_Type_free(&every_other);

    MPI_Type_indexed(2, lengths, places, MPI_DOUBLE, &swapped);
    MPI_Type_commit(&swapped);
    OK(BCAST, MPI_Bcast(two, rank == 0 ? 2 : 1, rank == 0 ? MPI_DOUBLE : swapped, 0, comm));
    CHECK(two[0] == (rank == 0 ? 1 : 2) && two[1] == (rank == 0 ? 2 : 1), "%g %g", two[0], two[1]);
    MPI_Type_free(&swapped);
}

/* A buffer that begins at MPI_BOTTOM. */
static void check_bottom(MPI_Comm comm, int rank)
{
    const int    length = 1;
    double       held   = rank == 0 ? 42 : 0;
    MPI_Aint     address;
    MPI_Datatype there, as = MPI_DOUBLE;

    MPI_Get_address(&held, &address);
    MPI_Type_create_struct(1, &length, &address, &as, &there);
    MPI_Type_commit(&there);
    OK(BCAST, MPI_Bcast(MPI_BOTTOM, 1, there, 0, comm));
    CHECK(held == 42, "%g", held);
    MPI_Type_free(&there);
}

/* ---- communicators ------------------------------------------------------------------------------------------------------ */

static void check_all(MPI_Comm comm, int few)
{
    int          rank, size;
    MPI_Datatype made[3];

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_contiguous(8, MPI_BYTE, &made[0]);
    MPI_Type_vector(2, 1, 1, MPI_FLOAT, &made[1]);
    MPI_Type_dup(MPI_INT64_T, &made[2]);
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(&made[i]);
    }
    check_reductions(comm, rank, size, few);
    check_other_operations(comm, rank, size);
    check_moves(comm, rank, size, made);
    check_gaps(comm, rank, size);
    check_bottom(comm, rank);
    OK(BARRIER, MPI_Barrier(comm));
    for (int i = 0; i < 3; i++) {
        MPI_Type_free(&made[i]);
    }
}

/* Even and odd ranks, each in reverse order; a grid; a duplicate. */
static void check_communicators(int size)
{
    int      periods[1] = {1};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_all(comm, 1);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comm);
    check_all(comm, 1);
    MPI_Comm_free(&comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periods, 0, &comm);
    check_all(comm, 1);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 0, 0, &comm);
    if (comm != MPI_COMM_NULL) {
        check_all(comm, 1); /* is not freed */
    }
}

static void check_inter(int size)
{
    const int low = world_rank < size / 2;
    int       one = 1, sum = 0, others = low ? size - size / 2 : size / 2, all[8];
    MPI_Comm  half, inter;

    if (size == 1) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 5, &inter);
    OK(ALLREDUCE, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == others, "%d", sum);
    one = world_rank;
    OK(BCAST, MPI_Bcast(&one, 1, MPI_INT, low ? (world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, inter));
    CHECK(one == (low ? world_rank : 0), "%d", one);
    one = world_rank;
    OK(ALLGATHER, MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < others; i++) {
        CHECK(all[i] == i + (low ? size / 2 : 0), "%d at %d", all[i], i);
    }
    one = 1;
    sum = 0;
    OK(REDUCE, MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM,
                          low                      ? 0
                          : world_rank == size / 2 ? MPI_ROOT
                                                   : MPI_PROC_NULL,
                          inter));
    CHECK(sum == (world_rank == size / 2 && !low ? others : 0), "%d", sum);
    OK(BARRIER, MPI_Barrier(inter));
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Many at a time, and many one after the other. */
static void check_short_lived(int size)
{
    MPI_Comm comms[SHORT_LIVED];
    int      one = 1, sum;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SHORT_LIVED; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
            OK(ALLREDUCE, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[i]));
            CHECK(sum == size, "%d", sum);
            if (round == 1) {
                MPI_Comm_free(&comms[i]);
            }
        }
        for (int i = 0; i < SHORT_LIVED && round == 0; i++) {
            MPI_Comm_free(&comms[i]);
        }
    }
}

/* ---- the rest ----------------------------------------------------------------------------------------------------------- */

enum { EACH = 3 };

/* What the calls below share: EACH elements per rank, in `mine` the rank's number plus 1. */
typedef struct {
    int mine[EACH], all[8 * EACH], from[8 * EACH], counts[8], places[8], total;
} parts;

static parts parts_of(int size)
{
    parts p = {.total = size * (size + 1) / 2};

    for (int i = 0; i < EACH * size; i++) {
        p.from[i]          = world_rank + 1;
        p.mine[i % EACH]   = world_rank + 1;
        p.counts[i / EACH] = EACH;
        p.places[i / EACH] = i / EACH * EACH;
    }
    return p;
}

/* Of each rank its number plus 1. */
static void check_all_of(const parts *p, int size, const char *what)
{
    for (int i = 0; i < EACH * size; i++) {
        CHECK(p->all[i] == i / EACH + 1, "%s: %d at %d", what, p->all[i], i);
    }
}

#define COMPLETE(which, call)                                                                                          \
    do {                                                                                                               \
        MPI_Request request;                                                                                           \
        memset(p.all, 0, sizeof p.all);                                                                                \
        OK(which, call);                                                                                               \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                         \
    } while (0)

static void check_nonblocking_moves(int size)
{
    MPI_Comm world = MPI_COMM_WORLD;
    parts    p     = parts_of(size);

    COMPLETE(IALLGATHER, MPI_Iallgather(p.mine, EACH, MPI_INT, p.all, EACH, MPI_INT, world, &request));
    check_all_of(&p, size, "iallgather");
    COMPLETE(IALLGATHERV, MPI_Iallgatherv(p.mine, EACH, MPI_INT, p.all, p.counts, p.places, MPI_INT, world, &request));
    check_all_of(&p, size, "iallgatherv");
    COMPLETE(IALLTOALL, MPI_Ialltoall(p.from, EACH, MPI_INT, p.all, EACH, MPI_INT, world, &request));
    check_all_of(&p, size, "ialltoall");
    COMPLETE(IALLTOALLV,
             MPI_Ialltoallv(p.from, p.counts, p.places, MPI_INT, p.all, p.counts, p.places, MPI_INT, world, &request));
    check_all_of(&p, size, "ialltoallv");
    COMPLETE(IBCAST, MPI_Ibcast(p.mine, EACH, MPI_INT, size - 1, world, &request));
    CHECK(p.mine[EACH - 1] == size, "%d", p.mine[EACH - 1]);
    COMPLETE(IBARRIER, MPI_Ibarrier(world, &request));
}

static void check_nonblocking_reductions(int size)
{
    MPI_Comm world = MPI_COMM_WORLD;
    parts    p     = parts_of(size);

    COMPLETE(IALLREDUCE, MPI_Iallreduce(p.mine, p.all, EACH, MPI_INT, MPI_SUM, world, &request));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    COMPLETE(IREDUCE, MPI_Ireduce(p.mine, p.all, EACH, MPI_INT, MPI_SUM, 0, world, &request));
    CHECK(p.all[EACH - 1] == (world_rank == 0 ? p.total : 0), "%d", p.all[EACH - 1]);
    COMPLETE(IREDUCE_SCATTER, MPI_Ireduce_scatter(p.from, p.all, p.counts, MPI_INT, MPI_SUM, world, &request));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    COMPLETE(IREDUCE_SCATTER_BLOCK, MPI_Ireduce_scatter_block(p.from, p.all, EACH, MPI_INT, MPI_SUM, world, &request));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define START(call)                                                                                                    \
    do {                                                                                                               \
        MPI_Request request;                                                                                           \
        memset(p.all, 0, sizeof p.all);                                                                                \
        OK(PERSISTENT, call);                                                                                          \
        MPI_Start(&request);                                                                                           \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                         \
        MPI_Request_free(&request);                                                                                    \
    } while (0)

static void check_persistent(int size)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Info none  = MPI_INFO_NULL;
    parts    p     = parts_of(size);

    START(MPI_Allgather_init(p.mine, EACH, MPI_INT, p.all, EACH, MPI_INT, world, none, &request));
    check_all_of(&p, size, "allgather_init");
    START(MPI_Allgatherv_init(p.mine, EACH, MPI_INT, p.all, p.counts, p.places, MPI_INT, world, none, &request));
    check_all_of(&p, size, "allgatherv_init");
    START(MPI_Alltoall_init(p.from, EACH, MPI_INT, p.all, EACH, MPI_INT, world, none, &request));
    check_all_of(&p, size, "alltoall_init");
    START(MPI_Alltoallv_init(p.from, p.counts, p.places, MPI_INT, p.all, p.counts, p.places, MPI_INT, world, none,
                             &request));
    check_all_of(&p, size, "alltoallv_init");
    START(MPI_Allreduce_init(p.mine, p.all, EACH, MPI_INT, MPI_SUM, world, none, &request));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    START(MPI_Reduce_init(p.mine, p.all, EACH, MPI_INT, MPI_SUM, 0, world, none, &request));
    CHECK(p.all[EACH - 1] == (world_rank == 0 ? p.total : 0), "%d", p.all[EACH - 1]);
    START(MPI_Reduce_scatter_init(p.from, p.all, p.counts, MPI_INT, MPI_SUM, world, none, &request));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    START(MPI_Reduce_scatter_block_init(p.from, p.all, EACH, MPI_INT, MPI_SUM, world, none, &request));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    START(MPI_Bcast_init(p.mine, EACH, MPI_INT, size - 1, world, none, &request));
    CHECK(p.mine[EACH - 1] == size, "%d", p.mine[EACH - 1]);
    START(MPI_Barrier_init(world, none, &request));
}
#else
static void check_persistent(int size)
{
    (void)size;
}
#endif

static int errors_seen;

/* NOLINTNEXTLINE(readability-non-const-parameter): MPI says how it is called */
static void see_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    errors_seen += *code != MPI_SUCCESS;
}

/* The communicator's own handler hears of wrong arguments, which are the same on all ranks, as they are without the drop-in. */
static void check_errors(void)
{
    int            held[2] = {0}, class = MPI_SUCCESS;
    MPI_Errhandler handler;
    MPI_Comm       comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(see_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    const int count = COUNTED(BCAST, MPI_Bcast(held, -1, MPI_INT, 0, comm));
    MPI_Error_class(count, &class);
    CHECK(class == MPI_ERR_COUNT, "class %d", class);
    const int root = COUNTED(BCAST, MPI_Bcast(held, 1, MPI_INT, 1000, comm));
    MPI_Error_class(root, &class);
    CHECK(class == MPI_ERR_ROOT, "class %d", class);
    const int type = COUNTED(ALLREDUCE, MPI_Allreduce(held, held + 1, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    MPI_Error_class(type, &class);
    CHECK(class == MPI_ERR_TYPE || class == MPI_ERR_OP, "class %d", class);
    CHECK(errors_seen == 3, "%d calls of the error handler", errors_seen);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

static void *use_own(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    int      size, one[512], sum[512];

    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 512; i++) {
        one[i] = 1;
    }
    for (int round = 0; round < 50; round++) {
        if (MPI_Allreduce(one, sum, 512, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS || sum[511] != size) {
            return argument;
        }
    }
    return NULL;
}

static void check_threads(void)
{
    MPI_Comm  comms[2];
    pthread_t thread;
    void     *other = NULL;

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    if (pthread_create(&thread, NULL, use_own, &comms[1]) == 0) {
        const void *mine = use_own(&comms[0]);

        pthread_join(thread, &other);
        CHECK(mine == NULL && other == NULL, "a sum of a thread");
        calls[ALLREDUCE] += 100;
    }
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

#if MPI_VERSION >= 4
static void check_wide(int size)
{
    MPI_Comm  world = MPI_COMM_WORLD;
    parts     p     = parts_of(size);
    MPI_Count counts[8];
    MPI_Aint  places[8];

    for (int r = 0; r < size; r++) {
        counts[r] = EACH;
        places[r] = EACH * r;
    }
    OK(ALLGATHER, MPI_Allgather_c(p.mine, EACH, MPI_INT, p.all, EACH, MPI_INT, world));
    check_all_of(&p, size, "allgather_c");
    memset(p.all, 0, sizeof p.all);
    OK(ALLGATHERV, MPI_Allgatherv_c(p.mine, EACH, MPI_INT, p.all, counts, places, MPI_INT, world));
    check_all_of(&p, size, "allgatherv_c");
    memset(p.all, 0, sizeof p.all);
    OK(ALLTOALL, MPI_Alltoall_c(p.from, EACH, MPI_INT, p.all, EACH, MPI_INT, world));
    check_all_of(&p, size, "alltoall_c");
    memset(p.all, 0, sizeof p.all);
    OK(ALLTOALLV, MPI_Alltoallv_c(p.from, counts, places, MPI_INT, p.all, counts, places, MPI_INT, world));
    check_all_of(&p, size, "alltoallv_c");
    memset(p.all, 0, sizeof p.all);
    OK(REDUCE, MPI_Reduce_c(p.mine, p.all, EACH, MPI_INT, MPI_SUM, 0, world));
    CHECK(p.all[EACH - 1] == (world_rank == 0 ? p.total : 0), "%d", p.all[EACH - 1]);
    OK(ALLREDUCE, MPI_Allreduce_c(p.mine, p.all, EACH, MPI_INT, MPI_SUM, world));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    memset(p.all, 0, sizeof p.all);
    OK(REDUCE_SCATTER, MPI_Reduce_scatter_c(p.from, p.all, counts, MPI_INT, MPI_SUM, world));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    memset(p.all, 0, sizeof p.all);
    OK(REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block_c(p.from, p.all, EACH, MPI_INT, MPI_SUM, world));
    CHECK(p.all[EACH - 1] == p.total, "%d", p.all[EACH - 1]);
    OK(BCAST, MPI_Bcast_c(p.mine, EACH, MPI_INT, size - 1, world));
    CHECK(p.mine[EACH - 1] == size, "%d", p.mine[EACH - 1]);
}
#else
static void check_wide(int size)
{
    (void)size;
}
#endif

/* Returns the level that there is, MPI_THREAD_SINGLE after MPI_Init(). */
static int begin(int argc, char **argv)
{
    static const char *const LEVELS[] = {"single", "funneled", "serialized", "multiple"};
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    int       level    = MPI_THREAD_SINGLE;

    if (argc < 2) {
        MPI_Init(&argc, &argv);
        return level;
    }
    for (int i = 0; i < 4; i++) {
        if (strcmp(argv[1], LEVELS[i]) == 0) {
            MPI_Init_thread(&argc, &argv, levels[i], &level);
            return level;
        }
    }
    exit(2);
}

int main(int argc, char **argv)
{
    const int level = begin(argc, argv);
    int       size, all_wrong = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_all(MPI_COMM_WORLD, 0);
    check_all(MPI_COMM_SELF, 1);
    check_communicators(size);
    check_inter(size);
    check_short_lived(size);
    check_nonblocking_moves(size);
    check_nonblocking_reductions(size);
    check_persistent(size);
    check_errors();
    check_wide(size);
    if (level == MPI_THREAD_MULTIPLE) {
        check_threads();
    }
    calls[ALLREDUCE]++;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < N_NAMES && world_rank == 0; i++) {
        printf("called %s %ld\n", NAMES[i], calls[i]);
    }
    MPI_Finalize();
    return all_wrong != 0;
}
