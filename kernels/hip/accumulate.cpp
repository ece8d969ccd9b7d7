/* Adding up in f32, with one factor. */
#include "kernels/hip/element.h"

namespace fsdpi
{

template <class T> struct accumulation {
    enum { WIDTH = 16 / sizeof(T) };

    float   *sum;
    const T *x;
    float    factor;
    bool     fresh;

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        const packet<T, N> terms  = load<N>(x + i);
        packet<float, N>   so_far = {};

        if (!fresh) {
            so_far = load<N>(static_cast<const float *>(sum) + i);
        }
        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            const float term = static_cast<float>(widen(terms.at[k])) * factor;

            so_far.at[k] = fresh ? term : so_far.at[k] + term;
        }
        store<N>(sum + i, so_far);
    }
};

struct accumulate_call {
    float           *sum;
    bool             fresh;
    const void      *x;
    float            factor;
    size_t           count;
    fsdpi_gpu_stream stream;

    template <class T> int on() const
    {
        const operand operands[] = {{sum, sizeof(float)}, {x, sizeof(T)}};

        return launch_elementwise(accumulation<T>{sum, static_cast<const T *>(x), factor, fresh}, operands, 2, count,
                                  stream);
    }
};

} // namespace fsdpi

int fsdpi_gpu_accumulate(float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor, size_t count,
                         fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype,
                                  fsdpi::accumulate_call{sum, fresh, x, static_cast<float>(factor), count, stream});
}
