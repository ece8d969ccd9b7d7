#include "tools/preload/engine/take.h"

#include "fsdp/collectives.h"

/* A sum of counts, in elements; false if one is negative. */
static bool add_counts(const fsdpi_call *call, const void *counts, int size, uint64_t *sum)
{
    *sum = 0;
    for (int i = 0; i < size; i++) {
        const int64_t count = fsdpi_entry(call, counts, i);

        if (count < 0) {
            return false;
        }
        *sum += (uint64_t)count;
    }
    return true;
}

static bool multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product) && *product <= INT64_MAX;
}

bool fsdpi_is_reduction(fsdpi_collective which)
{
    return which == FSDPI_ALLREDUCE || which == FSDPI_REDUCE || which == FSDPI_REDUCE_SCATTER ||
           which == FSDPI_REDUCE_SCATTER_BLOCK;
}

static bool has_root(fsdpi_collective which)
{
    return which == FSDPI_BCAST || which == FSDPI_REDUCE;
}

/* Elements of the full vector, where every rank knows them; false if an argument is none. */
static bool count_elements(const fsdpi_call *call, int size, uint64_t *elements)
{
    switch (call->collective) {
    case FSDPI_ALLGATHERV:
    case FSDPI_REDUCE_SCATTER:
        return call->out_counts != NULL && add_counts(call, call->out_counts, size, elements);
    case FSDPI_ALLTOALLV:
    case FSDPI_BARRIER:
        *elements = 0;
        return true;
    case FSDPI_ALLGATHER:
    case FSDPI_ALLTOALL:
    case FSDPI_REDUCE_SCATTER_BLOCK:
        return call->out_count >= 0 && multiply((uint64_t)call->out_count, (uint64_t)size, elements);
    default:
        *elements = (uint64_t)call->out_count;
        return call->out_count >= 0;
    }
}

static fsdpi_fate reducible(const fsdpi_arguments *a, fsdpi_volume *volume)
{
    switch (fsdpi_type_reduced(a->out_type, a->op, &volume->reduced)) {
    case FSDPI_NOT_THIS_OP:
        return FSDPI_OP;
    case FSDPI_NOT_THIS_TYPE:
        return FSDPI_TYPE;
    case FSDPI_REDUCIBLE:
        break;
    }
    return FSDPI_TAKEN;
}

fsdpi_fate fsdpi_measure(const fsdpi_arguments *arguments, const fsdpi_communicator *of, fsdpi_volume *volume)
{
    const fsdpi_call *call = arguments->call;
    fsdpi_fate        fate = FSDPI_TAKEN;
    uint64_t          elements;

    volume->bytes = volume->each = 0;
    if (!count_elements(call, of->size, &elements) ||
        (has_root(call->collective) && (call->root < 0 || call->root >= of->size))) {
        return FSDPI_ARGUMENT;
    }
    if (call->collective == FSDPI_BARRIER || call->collective == FSDPI_ALLTOALLV) {
        return FSDPI_TAKEN;
    }
    if (fsdpi_is_reduction(call->collective)) {
        fate = reducible(arguments, volume);
    }
    const uint64_t size = fate == FSDPI_TAKEN && fsdpi_is_reduction(call->collective)
                              ? volume->reduced.size
                              : fsdpi_type_moved(arguments->out_type).size;
    if (!multiply(elements, size, &volume->bytes)) {
        return FSDPI_ARGUMENT;
    }
    volume->each = volume->bytes / (uint64_t)of->size;
    return fate != FSDPI_TAKEN ? fate : volume->bytes == 0 ? FSDPI_NOT_WORTH : FSDPI_TAKEN;
}

/* Input that is moved: `bytes` in a type without gaps, or in place; and not where the output is. */
static bool fits(const fsdpi_arguments *a, uint64_t bytes)
{
    uint64_t          in_bytes;
    const fsdpi_moved moved = fsdpi_type_moved(a->in_type);

    return a->in != a->out && moved.contiguous && a->call->in_count >= 0 &&
           multiply((uint64_t)a->call->in_count, moved.size, &in_bytes) && in_bytes == bytes;
}

static const void *input_of(const fsdpi_arguments *a)
{
    return a->in == MPI_IN_PLACE ? FSDP_IN_PLACE : a->in;
}

static fsdp_status take_allgather(const fsdpi_arguments *a, fsdp_context *ctx, const fsdpi_volume *volume)
{
    const bool mine = fsdpi_type_moved(a->out_type).contiguous && (a->in == MPI_IN_PLACE || fits(a, volume->each));

    return fsdp_allgather(ctx, mine ? input_of(a) : NULL, mine ? a->out : NULL, volume->each, FSDP_U8);
}

/* Counts in bytes, and whether the parts follow each other without gaps. */
static bool list_parts(const fsdpi_arguments *a, const fsdpi_communicator *of, uint64_t size)
{
    const fsdpi_call *call  = a->call;
    int64_t           place = 0;
    bool              dense = call->out_displacements != NULL;

    for (int i = 0; i < of->size; i++) {
        const int64_t count = fsdpi_entry(call, call->out_counts, i);

        of->lists[i] = (size_t)count * size;
        dense        = dense && (count == 0 || fsdpi_entry(call, call->out_displacements, i) == place);
        place += count;
    }
    return dense;
}

static fsdp_status take_allgatherv(const fsdpi_arguments *a, const fsdpi_communicator *of)
{
    const fsdpi_moved moved = fsdpi_type_moved(a->out_type);
    const bool        dense = list_parts(a, of, moved.size);
    const bool        mine  = moved.contiguous && dense && (a->in == MPI_IN_PLACE || fits(a, of->lists[of->rank]));

    return fsdp_allgatherv(of->ctx, mine ? input_of(a) : NULL, mine ? a->out : NULL, of->lists, FSDP_U8);
}

static fsdp_status take_alltoall(const fsdpi_arguments *a, const fsdpi_communicator *of, const fsdpi_volume *volume)
{
    const bool mine = fsdpi_type_moved(a->out_type).contiguous && (a->in == MPI_IN_PLACE || fits(a, volume->each));

    return fsdp_alltoall(of->ctx, mine ? input_of(a) : NULL, mine ? a->out : NULL, volume->each, FSDP_U8);
}

/* Counts and displacements in bytes; false if they are none that the library takes. */
static bool list_blocks(const fsdpi_call *call, const fsdpi_communicator *of, const void *counts,
                        const void *displacements, MPI_Datatype type, size_t *bytes)
{
    const fsdpi_moved moved = fsdpi_type_moved(type);

    if (!moved.contiguous || counts == NULL || displacements == NULL) {
        return false;
    }
    for (int i = 0; i < of->size; i++) {
        const int64_t count = fsdpi_entry(call, counts, i), place = fsdpi_entry(call, displacements, i);

        if (count < 0 || (count > 0 && place < 0)) {
            return false;
        }
        bytes[i]            = (size_t)count * moved.size;
        bytes[i + of->size] = count > 0 ? (size_t)place * moved.size : 0;
    }
    return true;
}

static fsdp_status take_alltoallv(const fsdpi_arguments *a, const fsdpi_communicator *of)
{
    const fsdpi_call *call = a->call;
    const size_t      n    = (size_t)of->size;
    size_t           *in = of->lists, *out = of->lists + 2 * n;
    const bool        placed = a->in == MPI_IN_PLACE;
    const bool        mine =
        list_blocks(call, of, call->out_counts, call->out_displacements, a->out_type, out) &&
        (placed || (a->in != a->out && list_blocks(call, of, call->in_counts, call->in_displacements, a->in_type, in)));

    if (!mine) {
        return fsdp_alltoallv(of->ctx, NULL, NULL, NULL, NULL, NULL, NULL, FSDP_U8);
    }
    return fsdp_alltoallv(of->ctx, input_of(a), placed ? NULL : in, placed ? NULL : in + n, a->out, out, out + n,
                          FSDP_U8);
}

/* A named type, which is without gaps, and the same on all ranks: only the addresses are a rank's own. */
static fsdp_status take_reduction(const fsdpi_arguments *a, const fsdpi_communicator *of, const fsdpi_volume *volume)
{
    const fsdpi_call    *call  = a->call;
    const fsdpi_reduced *as    = &volume->reduced;
    const size_t         count = (size_t)call->out_count * as->parts;
    const bool           mine  = a->in != a->out;
    const void          *in    = mine ? input_of(a) : NULL;
    void                *out   = mine ? a->out : NULL;

    switch (call->collective) {
    case FSDPI_ALLREDUCE:
        return fsdp_allreduce(of->ctx, in, out, count, as->dtype, as->op);
    case FSDPI_REDUCE_SCATTER_BLOCK:
        return fsdp_reduce_scatter(of->ctx, in, out, count, as->dtype, as->op);
    default:
        for (int i = 0; i < of->size; i++) {
            of->lists[i] = (size_t)fsdpi_entry(call, call->out_counts, i) * as->parts;
        }
        return fsdp_reduce_scatterv(of->ctx, in, out, of->lists, as->dtype, as->op);
    }
}

static fsdp_status take_reduce(const fsdpi_arguments *a, const fsdpi_communicator *of, const fsdpi_volume *volume)
{
    const fsdpi_reduced *as      = &volume->reduced;
    const bool           is_root = a->call->root == of->rank;
    const bool           mine    = is_root ? a->in != a->out : a->in != MPI_IN_PLACE;

    return fsdp_reduce(of->ctx, mine ? input_of(a) : NULL, mine && is_root ? a->out : NULL,
                       (size_t)a->call->out_count * as->parts, as->dtype, as->op, a->call->root);
}

static fsdp_status take_broadcast(const fsdpi_arguments *a, fsdp_context *ctx, const fsdpi_volume *volume)
{
    const bool mine = fsdpi_type_moved(a->out_type).contiguous;

    return fsdp_broadcast(ctx, mine ? a->out : NULL, volume->bytes, FSDP_U8, a->call->root);
}

fsdp_status fsdpi_preload_take(const fsdpi_arguments *arguments, const fsdpi_communicator *of,
                               const fsdpi_volume *volume)
{
    switch (arguments->call->collective) {
    case FSDPI_ALLGATHER:
        return take_allgather(arguments, of->ctx, volume);
    case FSDPI_ALLGATHERV:
        return take_allgatherv(arguments, of);
    case FSDPI_BCAST:
        return take_broadcast(arguments, of->ctx, volume);
    case FSDPI_REDUCE:
        return take_reduce(arguments, of, volume);
    case FSDPI_ALLTOALL:
        return take_alltoall(arguments, of, volume);
    case FSDPI_ALLTOALLV:
        return take_alltoallv(arguments, of);
    case FSDPI_BARRIER:
        return fsdp_barrier(of->ctx);
    default:
        return take_reduction(arguments, of, volume);
    }
}
