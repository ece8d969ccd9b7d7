#define ON_DEVICE_ITSELF
#include "tests/gpu/on_device.h"

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/hip/job.h"
#include "tests/support/mpi_test.h"

enum { ROOM = 2 << 20, GUARD_BYTES = 64, GUARD = 0x5a, MOST = 4 };

/* Of a context: room for an input and an output, in symmetric memory and in plain. */
typedef struct memory {
    fsdp_context  *ctx;
    unsigned char *symmetric, *plain;
    unsigned       calls;
} memory;

static memory all[MOST];

static memory *memory_of(const fsdp_context *ctx)
{
    memory *of = all;

    while (of->ctx != ctx) {
        of++;
    }
    return of;
}

fsdp_status on_device_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx)
{
    static bool       joined;
    const fsdp_status status =
        !joined && hip_double_join_job(NULL) != 0 ? FSDP_ERR_STATE : fsdp_init(comm, config, ctx);
    memory *of = memory_of(NULL);

    joined = true;
    if (status == FSDP_OK) {
        of->ctx = *ctx;
        assert_int_equal(FSDP_OK,
                         fsdp_buffer_alloc(*ctx, FSDP_BUFFER_DEVICE, 2 * (size_t)ROOM, (void **)&of->symmetric));
        assert_int_equal(hipSuccess, hipMalloc((void **)&of->plain, 2 * (size_t)ROOM));
        assert_true(fsdp_device(*ctx) >= 0);
    }
    return status;
}

fsdp_status on_device_finalize(fsdp_context *ctx)
{
    memory *of = memory_of(ctx);

    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, of->symmetric));
    assert_int_equal(hipSuccess, hipFree(of->plain));
    *of = (memory){0};
    return fsdp_finalize(ctx);
}

/* A call's buffers: what the test knows, and where they are on the device, out of line like many a tensor. */
typedef struct copies {
    const void    *in;
    void          *out;
    size_t         in_bytes, out_bytes;
    unsigned char *in_there, *out_there;
} copies;

static size_t surrounded(size_t bytes)
{
    return bytes + 2 * (size_t)GUARD_BYTES;
}

static bool is_inside(const void *part, size_t bytes, const void *whole, size_t whole_bytes)
{
    const uintptr_t p = (uintptr_t)part, w = (uintptr_t)whole;

    return p >= w && p + bytes <= w + whole_bytes;
}

static void send(unsigned char *to, const void *from, size_t bytes)
{
    assert_true(surrounded(bytes) <= ROOM);
    assert_int_equal(hipSuccess, hipMemsetAsync(to - GUARD_BYTES, GUARD, surrounded(bytes), NULL));
    if (bytes > 0) {
        assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, NULL));
    }
}

/* Where the input is part of the output, or the other way round, so it is there. Nothing is waited for. */
static copies copy_there(fsdp_context *ctx, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    memory        *of    = memory_of(ctx);
    unsigned char *base  = of->calls++ % 2 == 0 ? of->symmetric : of->plain;
    copies         there = {.in = in, .out = out, .in_bytes = in_bytes, .out_bytes = out_bytes};

    there.in_there  = base + 256 + GUARD_BYTES;
    there.out_there = base + ROOM + GUARD_BYTES;
    if (in == FSDP_IN_PLACE || in == NULL || in_bytes == 0) {
        there.in_there = (unsigned char *)(uintptr_t)in;
    } else if (out_bytes > 0 && is_inside(in, in_bytes, out, out_bytes)) {
        there.in_there = there.out_there + ((const char *)in - (const char *)out);
    } else if (out_bytes > 0 && is_inside(out, out_bytes, in, in_bytes)) {
        there.out_there = there.in_there + ((const char *)out - (const char *)in);
        send(there.in_there, in, in_bytes);
        return there;
    } else {
        send(there.in_there, in, in_bytes);
    }
    if (out_bytes > 0) {
        send(there.out_there, out, out_bytes);
    } else {
        there.out_there = out;
    }
    return there;
}

/* Brings back the output, and in place all of the buffer that it is in. */
static fsdp_status bring_back(const copies *there, fsdp_status status)
{
    const bool inside = there->in != FSDP_IN_PLACE && there->in_bytes > there->out_bytes && there->out_bytes > 0 &&
                        is_inside(there->out, there->out_bytes, there->in, there->in_bytes);
    const size_t   bytes = inside ? there->in_bytes : there->out_bytes;
    unsigned char *from  = inside ? there->in_there : there->out_there;
    unsigned char *found = malloc(surrounded(bytes));

    if (bytes > 0) {
        assert_int_equal(hipSuccess,
                         hipMemcpyAsync(found, from - GUARD_BYTES, surrounded(bytes), hipMemcpyDefault, NULL));
    }
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
    for (size_t i = 0; i < GUARD_BYTES && bytes > 0; i++) {
        assert_int_equal(GUARD, found[i]);
        assert_int_equal(GUARD, found[GUARD_BYTES + bytes + i]);
    }
    if (bytes > 0) {
        memcpy(inside ? (void *)(uintptr_t)there->in : there->out, found + GUARD_BYTES, bytes);
    }
    free(found);
    return status;
}

static size_t sum_of(const fsdp_context *ctx, const size_t *counts)
{
    size_t sum = 0;

    for (int r = 0; r < fsdp_size(ctx); r++) {
        sum += counts[r];
    }
    return sum;
}

static size_t whole_of(const fsdp_context *ctx, size_t count)
{
    return count * (size_t)fsdp_size(ctx);
}

fsdp_status on_device_allgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype)
{
    const size_t width = fsdp_dtype_size(dtype);
    const copies there = copy_there(ctx, shard, count * width, full, whole_of(ctx, count) * width);

    return bring_back(&there, fsdp_allgather(ctx, there.in_there, there.out_there, count, dtype));
}

fsdp_status on_device_allgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts,
                                 fsdp_dtype dtype)
{
    const size_t width = fsdp_dtype_size(dtype);
    const copies there = copy_there(ctx, shard, counts[fsdp_rank(ctx)] * width, full, sum_of(ctx, counts) * width);

    return bring_back(&there, fsdp_allgatherv(ctx, there.in_there, there.out_there, counts, dtype));
}

fsdp_status on_device_reduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                                     fsdp_redop op)
{
    const size_t width = fsdp_dtype_size(dtype), whole = whole_of(ctx, count) * width;
    const copies there = copy_there(ctx, full, whole, shard, full == FSDP_IN_PLACE ? whole : count * width);

    return bring_back(&there, fsdp_reduce_scatter(ctx, there.in_there, there.out_there, count, dtype, op));
}

fsdp_status on_device_reduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                      fsdp_dtype dtype, fsdp_redop op)
{
    const size_t width = fsdp_dtype_size(dtype), whole = sum_of(ctx, counts) * width;
    const size_t part  = full == FSDP_IN_PLACE ? whole : counts[fsdp_rank(ctx)] * width;
    const copies there = copy_there(ctx, full, whole, shard, part);

    return bring_back(&there, fsdp_reduce_scatterv(ctx, there.in_there, there.out_there, counts, dtype, op));
}

fsdp_status on_device_allreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                fsdp_redop op)
{
    const size_t bytes = count * fsdp_dtype_size(dtype);
    const copies there = copy_there(ctx, in, bytes, out, bytes);

    return bring_back(&there, fsdp_allreduce(ctx, there.in_there, there.out_there, count, dtype, op));
}

fsdp_status on_device_broadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root)
{
    const copies there = copy_there(ctx, FSDP_IN_PLACE, 0, buffer, count * fsdp_dtype_size(dtype));

    return bring_back(&there, fsdp_broadcast(ctx, there.out_there, count, dtype, root));
}

fsdp_status on_device_reduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                             fsdp_redop op, int root)
{
    const size_t bytes = count * fsdp_dtype_size(dtype);
    const copies there = copy_there(ctx, in, bytes, out, fsdp_rank(ctx) == root ? bytes : 0);

    return bring_back(&there, fsdp_reduce(ctx, there.in_there, there.out_there, count, dtype, op, root));
}

fsdp_status on_device_alltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype)
{
    const size_t bytes = whole_of(ctx, count) * fsdp_dtype_size(dtype);
    const copies there = copy_there(ctx, in, bytes, out, bytes);

    return bring_back(&there, fsdp_alltoall(ctx, there.in_there, there.out_there, count, dtype));
}
