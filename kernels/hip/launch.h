/**
 * @file
 * How a kernel is spread over threads. A kernel is an object with its arguments as members, and so the same source runs
 * on a device and, thread after thread, in the tests' double of the runtime.
 */
#ifndef FSDPI_KERNELS_HIP_LAUNCH_H
#define FSDPI_KERNELS_HIP_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/gpu.h"
#include "kernels/hip/runtime.h"

#if defined(__HIPCC__) || defined(__CUDACC__)
#define FSDPI_GPU_CODE   1
#define FSDPI_DEVICE     __device__ __forceinline__
#define FSDPI_UNROLL     _Pragma("unroll")
#define FSDPI_UNROLL_BY4 _Pragma("unroll 4")
#else
#include "kernels/hip/emulation.h"
#define FSDPI_GPU_CODE 0
#define FSDPI_DEVICE   inline
#define FSDPI_UNROLL
#define FSDPI_UNROLL_BY4
#endif

#ifdef __CUDACC__
#define FSDPI_GRID_CONSTANT __grid_constant__
#else
#define FSDPI_GRID_CONSTANT
#endif

namespace fsdpi
{

/* Blocks of a grid: several for each of the compute units of any GPU there is; threads go on to further work by strides. */
constexpr unsigned THREADS_PER_BLOCK = 256, MOST_BLOCKS = 4096;

/* Threads that work on one item together: a divisor of every wavefront and warp. */
enum { TEAM = 16 };

/* ---- launching --------------------------------------------------------------------------------------------------- */

#if FSDPI_GPU_CODE

template <class Kernel>
__global__ void __launch_bounds__(THREADS_PER_BLOCK) on_device(const FSDPI_GRID_CONSTANT Kernel kernel)
{
    kernel.go(blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x, gridDim.x * static_cast<size_t>(blockDim.x));
}

/** Launches kernel.go(thread, n_threads) for `work` threads, or fewer. */
template <class Kernel> int launch(Kernel kernel, size_t work, fsdpi_gpu_stream stream)
{
    const size_t needed      = (work + THREADS_PER_BLOCK - 1) / THREADS_PER_BLOCK;
    const dim3   blocks      = {needed < MOST_BLOCKS ? static_cast<unsigned>(needed) : MOST_BLOCKS};
    void        *arguments[] = {&kernel};

    if (work == 0) {
        return 0;
    }
    return static_cast<int>(hipLaunchKernel(reinterpret_cast<const void *>(&on_device<Kernel>), blocks,
                                            dim3(THREADS_PER_BLOCK), arguments, 0, static_cast<hipStream_t>(stream)));
}

#else

template <class Kernel> void on_host(const void *kernel, size_t n_threads)
{
    for (size_t thread = 0; thread < n_threads; thread++) {
        static_cast<const Kernel *>(kernel)->go(thread, n_threads);
    }
}

template <class Kernel> int launch(const Kernel &kernel, size_t work, fsdpi_gpu_stream stream)
{
    return work == 0 ? 0 : fsdpi_emulate_launch(&kernel, sizeof kernel, on_host<Kernel>, work, stream);
}

#endif

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/** Several elements that are loaded and stored as one, in pieces of 16 bytes if there are so many. */
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) packet {
    T at[N];
};

#if FSDPI_GPU_CODE

template <class T> FSDPI_DEVICE T *reach(T *memory, size_t)
{
    return memory;
}

#else

template <class T> T *reach(T *memory, size_t bytes)
{
    return static_cast<T *>(fsdpi_emulate_access(memory, bytes, 1));
}

template <class T> const T *reach(const T *memory, size_t bytes)
{
    return static_cast<const T *>(fsdpi_emulate_access(memory, bytes, 0));
}

#endif

/** Loads N elements from memory that is aligned to all of them, or to 16 bytes. */
template <int N, class T> FSDPI_DEVICE packet<T, N> load(const T *from)
{
    return *reinterpret_cast<const packet<T, N> *>(reach(from, N * sizeof(T)));
}

template <int N, class T> FSDPI_DEVICE void store(T *to, const packet<T, N> &value)
{
    *reinterpret_cast<packet<T, N> *>(reach(to, N * sizeof(T))) = value;
}

/* ---- one element like the other ---------------------------------------------------------------------------------- */

/** How a run of elements is cut: single ones, then vectors, then single ones. */
struct cut {
    size_t head;
    size_t n_vectors;
    size_t count;
};

/** An array of a kernel, by its address and the BYTES of an element. */
struct operand {
    const void *memory;
    size_t      width;
};

/** The cut for which all vectors of WIDTH elements are aligned; without vectors where there is none. */
inline cut cut_for(const operand *operands, size_t n, size_t count, size_t width)
{
    for (size_t head = 0; head < 16 && head + width <= count; head++) {
        bool aligned = true;

        for (size_t i = 0; i < n; i++) {
            aligned = aligned && (reinterpret_cast<uintptr_t>(operands[i].memory) + head * operands[i].width) % 16 == 0;
        }
        if (aligned) {
            return {head, (count - head) / width, count};
        }
    }
    return {0, 0, count};
}

/** Calls body.run<N>(i) for all elements, N of them from number i on, where N is Body::WIDTH or 1. */
template <class Body> struct elementwise {
    Body body;
    cut  plan;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        const size_t in_vectors = plan.n_vectors * Body::WIDTH;

        for (size_t v = thread; v < plan.n_vectors; v += n_threads) {
            body.template run<Body::WIDTH>(plan.head + v * Body::WIDTH);
        }
        for (size_t i = thread; i < plan.count - in_vectors; i += n_threads) {
            body.template run<1>(i < plan.head ? i : i + in_vectors);
        }
    }
};

template <class Body>
int launch_elementwise(const Body &body, const operand *operands, size_t n_operands, size_t count,
                       fsdpi_gpu_stream stream)
{
    const cut    plan   = cut_for(operands, n_operands, count, Body::WIDTH);
    const size_t single = count - plan.n_vectors * Body::WIDTH;

    return launch(elementwise<Body>{body, plan}, plan.n_vectors > single ? plan.n_vectors : single, stream);
}

/* ---- teams ------------------------------------------------------------------------------------------------------- */

/**
 * For each item, TEAM threads call body.measure(item, lane), and then body.apply(item, lane, most) with the largest of what
 * that returned.
 */
template <class Body> struct teamwork {
    Body   body;
    size_t n_items;

#if FSDPI_GPU_CODE
    FSDPI_DEVICE static uint32_t other_lane(uint32_t mine, int distance)
    {
#ifdef __CUDACC__
        return __shfl_xor_sync(0xffffU << (threadIdx.x % 32 / TEAM * TEAM), mine, distance, TEAM);
#else
        return static_cast<uint32_t>(__shfl_xor(static_cast<int>(mine), distance, TEAM));
#endif
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        const unsigned lane = static_cast<unsigned>(thread % TEAM);

        for (size_t item = thread / TEAM; item < n_items; item += n_threads / TEAM) {
            uint32_t most = body.measure(item, lane);

            for (int distance = TEAM / 2; distance > 0; distance /= 2) {
                const uint32_t other = other_lane(most, distance);

                most = other > most ? other : most;
            }
            body.apply(item, lane, most);
        }
    }
#else
    void go(size_t thread, size_t n_threads) const
    {
        for (size_t item = thread; item < n_items; item += n_threads) {
            uint32_t most = 0;

            for (unsigned lane = 0; lane < TEAM; lane++) {
                const uint32_t one = body.measure(item, lane);

                most = one > most ? one : most;
            }
            for (unsigned lane = 0; lane < TEAM; lane++) {
                body.apply(item, lane, most);
            }
        }
    }
#endif
};

template <class Body> int launch_teams(const Body &body, size_t n_items, fsdpi_gpu_stream stream)
{
    return launch(teamwork<Body>{body, n_items}, n_items * TEAM, stream);
}

} // namespace fsdpi

#endif
