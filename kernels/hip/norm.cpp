/*
 * Norms: one read of each element, and 16 sums per segment written and read again, which is a hundredth of that or less.
 * Sums are formed by single threads, segment by segment, so that their order is the same on any grid.
 */
#include "kernels/hip/element.h"

namespace fsdpi
{

enum { LANES = 16, SEGMENT = 4096, FAN_IN = 64 };

struct squares {
    static FSDPI_DEVICE double with(double so_far, double x)
    {
        return so_far + x * x;
    }
    static FSDPI_DEVICE double join(double so_far, double other)
    {
        return so_far + other;
    }
};

struct largest {
    static FSDPI_DEVICE double with(double so_far, double x)
    {
        return join(so_far, x < 0 ? -x : x);
    }
    static FSDPI_DEVICE double join(double so_far, double other)
    {
        return other > so_far || is_nan(other) ? other : so_far;
    }
};

/* One thread has some lanes of a segment: as many as it loads at a time. */
template <class T, class Fold, int N> struct segments {
    enum { GROUPS = LANES / N };

    const T *x;
    size_t   count;
    double  *sums;

    FSDPI_DEVICE void one(size_t segment, unsigned group) const
    {
        const size_t      end    = count - segment * SEGMENT < SEGMENT ? count : (segment + 1) * SEGMENT;
        size_t            i      = segment * SEGMENT + group * N;
        packet<double, N> so_far = {};

        FSDPI_UNROLL_BY4
        for (; i + N <= end; i += LANES) {
            const packet<T, N> next = load<N>(x + i);

            FSDPI_UNROLL
            for (int k = 0; k < N; k++) {
                so_far.at[k] = Fold::with(so_far.at[k], static_cast<double>(widen(next.at[k])));
            }
        }
        FSDPI_UNROLL
        for (int k = 0; k < N; k++) { /* what is left is less than a vector, and another thread's if i is beyond */
            if (i + static_cast<size_t>(k) < end) {
                so_far.at[k] = Fold::with(so_far.at[k], static_cast<double>(widen(load<1>(x + i + k).at[0])));
            }
        }
        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            store<1>(sums + segment * LANES + group * N + k, packet<double, 1>{{so_far.at[k]}});
        }
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        const size_t n_segments = (count + SEGMENT - 1) / SEGMENT;

        for (size_t t = thread; t < n_segments * GROUPS; t += n_threads) {
            one(t / GROUPS, static_cast<unsigned>(t % GROUPS));
        }
    }
};

/* Lane by lane, FAN_IN sums in a row become one. */
template <class Fold> struct fewer {
    const double *sums;
    size_t        n;
    double       *folded;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t t = thread; t < (n + FAN_IN - 1) / FAN_IN * LANES; t += n_threads) {
            const size_t first = t / LANES * FAN_IN, lane = t % LANES;
            const size_t last   = n - first < FAN_IN ? n : first + FAN_IN;
            double       so_far = load<1>(sums + first * LANES + lane).at[0];

            FSDPI_UNROLL_BY4
            for (size_t s = first + 1; s < last; s++) {
                so_far = Fold::join(so_far, load<1>(sums + s * LANES + lane).at[0]);
            }
            store<1>(folded + t, packet<double, 1>{{so_far}});
        }
    }
};

/* The 16 lanes of one segment become one; of none, 0. */
template <class Fold> struct lanes {
    const double *sums;
    size_t        n;
    double       *result;

    FSDPI_DEVICE void go(size_t thread, size_t) const
    {
        double lane[LANES] = {};

        if (thread != 0) {
            return;
        }
        FSDPI_UNROLL
        for (int j = 0; j < LANES; j++) {
            lane[j] = n > 0 ? load<1>(sums + j).at[0] : 0.0;
        }
        FSDPI_UNROLL
        for (int width = LANES / 2; width > 0; width /= 2) {
            for (int j = 0; j < width; j++) {
                lane[j] = Fold::join(lane[j], lane[j + width]);
            }
        }
        store<1>(result, packet<double, 1>{{lane[0]}});
    }
};

/* By turns from one half of the scratch memory into the other. */
/* NOLINTBEGIN(readability-non-const-parameter): clang-tidy does not see through the kernels' templates */
template <class Fold> int fold_all(double *sums, size_t n, double *other, double *result, fsdpi_gpu_stream stream)
{
    while (n > 1) {
        const size_t groups = (n + FAN_IN - 1) / FAN_IN;
        const int    failed = launch(fewer<Fold>{sums, n, other}, groups * LANES, stream);
        double      *folded = other;

        if (failed != 0) {
            return failed;
        }
        other = sums;
        sums  = folded;
        n     = groups;
    }
    return launch(lanes<Fold>{sums, n, result}, 1, stream);
}

inline size_t segments_of(size_t count)
{
    return count / SEGMENT + (count % SEGMENT != 0);
}

template <class Fold> struct norm_call {
    double          *result;
    const void      *x;
    size_t           count;
    void            *scratch;
    fsdpi_gpu_stream stream;

    template <class T, int N> int first_pass(double *sums) const
    {
        typedef segments<T, Fold, N> kernel;

        return launch(kernel{static_cast<const T *>(x), count, sums}, segments_of(count) * kernel::GROUPS, stream);
    }

    template <class T> int on() const
    {
        const size_t n       = segments_of(count);
        double      *sums    = static_cast<double *>(scratch);
        const bool   aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0;
        const int    failed  = aligned ? first_pass<T, 16 / sizeof(T)>(sums) : first_pass<T, 1>(sums);

        return failed != 0 ? failed : fold_all<Fold>(sums, n, sums + n * LANES, result, stream);
    }
};

/* NOLINTEND(readability-non-const-parameter) */

} // namespace fsdpi

size_t fsdpi_gpu_norm_scratch(size_t count)
{
    const size_t n = fsdpi::segments_of(count);

    return (n + (n + fsdpi::FAN_IN - 1) / fsdpi::FAN_IN) * fsdpi::LANES * sizeof(double);
}

int fsdpi_gpu_squared_norm(double *sum, const void *x, size_t count, fsdp_dtype dtype, void *scratch,
                           fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype, fsdpi::norm_call<fsdpi::squares>{sum, x, count, scratch, stream});
}

int fsdpi_gpu_absolute_maximum(double *most, const void *x, size_t count, fsdp_dtype dtype, void *scratch,
                               fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype, fsdpi::norm_call<fsdpi::largest>{most, x, count, scratch, stream});
}
