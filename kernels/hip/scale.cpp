/* Scaling and clamping in place: one read and one write of each element. */
#include "kernels/hip/element.h"

namespace fsdpi
{

struct times {
    template <class W> static FSDPI_DEVICE W of(W x, W factor)
    {
        return x * factor;
    }
};

struct within {
    template <class W> static FSDPI_DEVICE W of(W x, W limit)
    {
        return x > limit ? limit : x < -limit ? -limit : x;
    }
};

template <class T, class Op> struct in_place {
    typedef typename element<T>::working working;
    enum { WIDTH = 16 / sizeof(T) };

    T      *x;
    working by;

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        packet<T, N> value = load<N>(static_cast<const T *>(x) + i);

        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            value.at[k] = element<T>::narrow(Op::of(static_cast<working>(widen(value.at[k])), by));
        }
        store<N>(x + i, value);
    }
};

template <class Op> struct in_place_call {
    void            *x;
    double           by;
    size_t           count;
    fsdpi_gpu_stream stream;

    template <class T> int on() const
    {
        const operand operands[] = {{x, sizeof(T)}};

        return launch_elementwise(in_place<T, Op>{static_cast<T *>(x), static_cast<typename element<T>::working>(by)},
                                  operands, 1, count, stream);
    }
};

} // namespace fsdpi

int fsdpi_gpu_scale(void *x, double factor, size_t count, fsdp_dtype dtype, fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype, fsdpi::in_place_call<fsdpi::times>{x, factor, count, stream});
}

int fsdpi_gpu_clamp(void *x, double limit, size_t count, fsdp_dtype dtype, fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype, fsdpi::in_place_call<fsdpi::within>{x, limit, count, stream});
}
