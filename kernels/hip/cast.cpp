/* Elements as another type: one read and one write of each. */
#include "kernels/hip/element.h"

namespace fsdpi
{

/* By f64 only where one of both is f64: else f32 holds what is read, and is rounded to what is written. */
template <class To, class From> struct conversion {
    enum { WIDTH = 16 / (sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From)) };

    To         *out;
    const From *in;

    static FSDPI_DEVICE To of(From x)
    {
        const typename element<From>::working wide = widen(x);
        return narrow_from(wide);
    }
    static FSDPI_DEVICE To narrow_from(double x)
    {
        return element<To>::from_f64(x);
    }
    static FSDPI_DEVICE To narrow_from(float x)
    {
        return element<To>::narrow(static_cast<typename element<To>::working>(x));
    }

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        const packet<From, N> x = load<N>(in + i);
        packet<To, N>         y;

        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            y.at[k] = of(x.at[k]);
        }
        store<N>(out + i, y);
    }
};

/* To the same type: the bits, whatever they are. */
template <class T> struct conversion<T, T> {
    enum { WIDTH = 16 / sizeof(T) };

    T       *out;
    const T *in;

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        store<N>(out + i, load<N>(in + i));
    }
};

template <class From> struct cast_from {
    void            *out;
    const void      *in;
    size_t           count;
    fsdpi_gpu_stream stream;

    template <class To> int on() const
    {
        const operand operands[] = {{out, sizeof(To)}, {in, sizeof(From)}};

        return launch_elementwise(conversion<To, From>{static_cast<To *>(out), static_cast<const From *>(in)}, operands,
                                  2, count, stream);
    }
};

struct cast_call {
    void            *out;
    fsdp_dtype       out_dtype;
    const void      *in;
    size_t           count;
    fsdpi_gpu_stream stream;

    template <class From> int on() const
    {
        return with_float_type(out_dtype, cast_from<From>{out, in, count, stream});
    }
};

} // namespace fsdpi

int fsdpi_gpu_cast(void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count,
                   fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(in_dtype, fsdpi::cast_call{out, out_dtype, in, count, stream});
}
