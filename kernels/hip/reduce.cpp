/*
 * The reduction of several operands in one pass: L reads and one write per result, in the order of the operands.
 */
#include "kernels/hip/element.h"

namespace fsdpi
{

/* Integers wrap: their sums and products are taken unsigned. */
template <class T> struct wrapping {
    typedef T type;
};
template <> struct wrapping<int64_t> {
    typedef uint64_t type;
};
template <> struct wrapping<int32_t> {
    typedef uint32_t type;
};
template <> struct wrapping<uint8_t> {
    typedef uint32_t type;
};

struct sum {
    template <class A> static FSDPI_DEVICE A of(A so_far, A x)
    {
        typedef typename wrapping<A>::type wide;
        return static_cast<A>(static_cast<wide>(so_far) + static_cast<wide>(x));
    }
};

struct product {
    template <class A> static FSDPI_DEVICE A of(A so_far, A x)
    {
        typedef typename wrapping<A>::type wide;
        return static_cast<A>(static_cast<wide>(so_far) * static_cast<wide>(x));
    }
};

struct minimum {
    template <class A> static FSDPI_DEVICE A of(A so_far, A x)
    {
        return x < so_far || is_nan(x) ? x : so_far;
    }
};

struct maximum {
    template <class A> static FSDPI_DEVICE A of(A so_far, A x)
    {
        return x > so_far || is_nan(x) ? x : so_far;
    }
};

FSDPI_DEVICE double divide(double x, uint64_t divisor)
{
    return x / static_cast<double>(divisor);
}

FSDPI_DEVICE float divide(float x, uint64_t divisor)
{
    return x / static_cast<float>(divisor);
}

FSDPI_DEVICE int64_t divide(int64_t x, uint64_t divisor)
{
    return x / static_cast<int64_t>(divisor);
}

FSDPI_DEVICE int32_t divide(int32_t x, uint64_t divisor)
{
    return static_cast<int32_t>(static_cast<int64_t>(x) / static_cast<int64_t>(divisor));
}

FSDPI_DEVICE uint8_t divide(uint8_t x, uint64_t divisor)
{
    return static_cast<uint8_t>(x / divisor);
}

template <class T, class Op> struct reduction {
    typedef typename element<T>::working working;
    enum { WIDTH = 16 / sizeof(T) };

    T       *out[FSDPI_GPU_OPERANDS];
    const T *in[FSDPI_GPU_OPERANDS];
    unsigned n_out, n_in;
    uint64_t divisor; /* 0: none */

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        packet<T, N> next = load<N>(in[0] + i);
        working      so_far[N];

        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            so_far[k] = widen(next.at[k]);
        }
        FSDPI_UNROLL_BY4
        for (unsigned r = 1; r < n_in; r++) {
            next = load<N>(in[r] + i);
            FSDPI_UNROLL
            for (int k = 0; k < N; k++) {
                so_far[k] = Op::of(so_far[k], static_cast<working>(widen(next.at[k])));
            }
        }
        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            next.at[k] = element<T>::narrow(divisor != 0 ? divide(so_far[k], divisor) : so_far[k]);
        }
        for (unsigned o = 0; o < n_out; o++) {
            store<N>(out[o] + i, next);
        }
    }
};

struct reduce_call {
    void *const       *out;
    const void *const *in;
    size_t             n_out, n_in, count, divisor;
    fsdp_redop         op;
    fsdpi_gpu_stream   stream;

    template <class T, class Op> int with(size_t divide_by) const
    {
        reduction<T, Op> body = {};
        operand          operands[2 * FSDPI_GPU_OPERANDS];

        for (size_t o = 0; o < n_out; o++) {
            body.out[o] = static_cast<T *>(out[o]);
            operands[o] = {out[o], sizeof(T)};
        }
        for (size_t r = 0; r < n_in; r++) {
            body.in[r]          = static_cast<const T *>(in[r]);
            operands[n_out + r] = {in[r], sizeof(T)};
        }
        body.n_out   = static_cast<unsigned>(n_out);
        body.n_in    = static_cast<unsigned>(n_in);
        body.divisor = divide_by;
        return launch_elementwise(body, operands, n_out + n_in, count, stream);
    }

    template <class T> int on() const
    {
        switch (op) {
        case FSDP_SUM:
            return with<T, sum>(0);
        case FSDP_AVG:
            return with<T, sum>(divisor);
        case FSDP_MIN:
            return with<T, minimum>(0);
        case FSDP_MAX:
            return with<T, maximum>(0);
        case FSDP_PROD:
            return with<T, product>(0);
        }
        return static_cast<int>(hipErrorInvalidValue);
    }
};

} // namespace fsdpi

int fsdpi_gpu_reduce_into(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                          fsdp_dtype dtype, fsdp_redop op, size_t divisor, fsdpi_gpu_stream stream)
{
    if (n_in > FSDPI_GPU_OPERANDS || n_out > FSDPI_GPU_OPERANDS) {
        return static_cast<int>(hipErrorInvalidValue);
    }
    return fsdpi::with_type(dtype, fsdpi::reduce_call{out, in, n_out, n_in, count, divisor, op, stream});
}
