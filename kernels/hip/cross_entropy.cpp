/*
 * Cross-entropy of logits in rows. For sums and maxima, a row has as many threads as the host's kernels have interleaved sums; for
 * gradients, a piece of a row has a team.
 */
#include <math.h>

#include "kernels/hip/element.h"
#include "kernels/host/exponential.h"

namespace fsdpi
{

enum { LANES = FSDPI_GPU_LANES, NO_TARGET = -1 };

/* Nothing shifted is above 0. */
FSDPI_DEVICE float exponential(float x, double shift)
{
    return fsdpi_exponential_f32(x - static_cast<float>(shift));
}

FSDPI_DEVICE double exponential(double x, double shift)
{
    return exp(x - shift);
}

FSDPI_DEVICE double larger(double a, double b)
{
    return b > a || is_nan(b) ? b : a;
}

FSDPI_DEVICE double value_at(const double *from)
{
    return load<1>(from).at[0];
}

FSDPI_DEVICE void put(double *to, double value)
{
    store<1>(to, packet<double, 1>{{value}});
}

/* ---- a thread for every eighth column of a row ------------------------------------------------------------------------ */

template <class T> struct largest_logits {
    fsdpi_gpu_entropy e;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t t = thread; t < e.rows * LANES; t += n_threads) {
            const T *row  = static_cast<const T *>(e.logits) + t / LANES * e.count;
            double   most = f64_from_bits(0xfff0000000000000U);

            FSDPI_UNROLL_BY4
            for (size_t c = t % LANES; c < e.count; c += LANES) {
                most = larger(most, static_cast<double>(load<1>(row + c).at[0]));
            }
            put(e.lanes + t, most);
        }
    }
};

template <class T> struct exponentials {
    fsdpi_gpu_entropy e;

    FSDPI_DEVICE void one(size_t i, size_t lane) const
    {
        T           *row     = static_cast<T *>(e.logits) + i * e.count;
        const double largest = value_at(e.largest + i);
        const size_t target =
            static_cast<size_t>(load<1>(e.targets + i).at[0]) - e.begin; /* of others it wraps around */
        double sum = 0, own = 0;

        for (size_t c = lane; c < e.count; c += LANES) {
            const T x = load<1>(static_cast<const T *>(row) + c).at[0], y = exponential(x, largest);

            own = c == target ? static_cast<double>(x) - largest : own;
            sum += static_cast<double>(y);
            store<1>(row + c, packet<T, 1>{{y}});
        }
        put(e.lanes + i * LANES + lane, sum);
        if (lane == (target < e.count ? target % LANES : 0)) {
            put(e.sums + 2 * i + 1, own);
        }
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t t = thread; t < e.rows * LANES; t += n_threads) {
            one(t / LANES, t % LANES);
        }
    }
};

/* ---- a thread for a row ------------------------------------------------------------------------------------------- */

struct joined_maxima {
    fsdpi_gpu_entropy e;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t i = thread; i < e.rows; i += n_threads) {
            double most = value_at(e.lanes + i * LANES);

            for (size_t lane = 1; lane < LANES; lane++) {
                most = larger(most, value_at(e.lanes + i * LANES + lane));
            }
            put(e.largest + i, most);
        }
    }
};

/* In the order of fsdpi_exponentials_f32(). */
struct joined_sums {
    fsdpi_gpu_entropy e;

    FSDPI_DEVICE double pair(size_t i, size_t lane) const
    {
        return value_at(e.lanes + i * LANES + lane) + value_at(e.lanes + i * LANES + lane + LANES / 2);
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t i = thread; i < e.rows; i += n_threads) {
            put(e.sums + 2 * i, (pair(i, 0) + pair(i, 2)) + (pair(i, 1) + pair(i, 3)));
        }
    }
};

FSDPI_DEVICE bool is_strange(const fsdpi_gpu_entropy &e, int32_t target)
{
    return target != NO_TARGET && (target < 0 || static_cast<size_t>(target) >= e.vocabulary);
}

struct losses {
    fsdpi_gpu_entropy e;

    FSDPI_DEVICE double loss(size_t i) const
    {
        const int32_t target = load<1>(e.targets + i).at[0];

        if (target == NO_TARGET) {
            return 0;
        }
        return is_strange(e, target) ? not_a_number() : log(value_at(e.sums + 2 * i)) - value_at(e.sums + 2 * i + 1);
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t i = thread; i < e.rows; i += n_threads) {
            put(e.losses + i, loss(i));
        }
    }
};

/* ---- a team for a piece of a row ------------------------------------------------------------------------------------ */

enum { PIECE = 64 * TEAM };

template <class T> struct gradients {
    fsdpi_gpu_entropy e;
    size_t            pieces; /* of a row */

    FSDPI_DEVICE T gradient(T exponential, double factor, int32_t target, bool is_target) const
    {
        const T scaled = exponential * static_cast<T>(factor);

        if (target == NO_TARGET) {
            return 0;
        }
        if (is_strange(e, target)) {
            return static_cast<T>(not_a_number());
        }
        return is_target ? scaled - static_cast<T>(e.scale) : scaled;
    }

    FSDPI_DEVICE void one(size_t i, size_t begin, size_t lane) const
    {
        T            *row    = static_cast<T *>(e.logits) + i * e.count;
        const int32_t target = load<1>(e.targets + i).at[0];
        const size_t  column = static_cast<size_t>(target) - e.begin, left = e.count - begin;
        const double  factor = e.scale / value_at(e.sums + 2 * i);

        for (size_t c = begin + lane; c < begin + (left < PIECE ? left : static_cast<size_t>(PIECE)); c += TEAM) {
            const T x = load<1>(static_cast<const T *>(row) + c).at[0];

            store<1>(row + c, packet<T, 1>{{gradient(x, factor, target, c == column)}});
        }
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t t = thread; t < e.rows * pieces * TEAM; t += n_threads) {
            const size_t piece = t / TEAM;

            one(piece / pieces, piece % pieces * PIECE, t % TEAM);
        }
    }
};

/* ---- calls -------------------------------------------------------------------------------------------------------- */

template <template <class> class Kernel> int launch_lanes(const fsdpi_gpu_entropy &e, fsdpi_gpu_stream stream)
{
    switch (e.dtype) {
    case FSDP_F32:
        return launch(Kernel<float>{e}, e.rows * LANES, stream);
    case FSDP_F64:
        return launch(Kernel<double>{e}, e.rows * LANES, stream);
    default:
        return static_cast<int>(hipErrorInvalidValue);
    }
}

template <class T> int launch_gradients(const fsdpi_gpu_entropy &e, fsdpi_gpu_stream stream)
{
    const size_t pieces = (e.count + PIECE - 1) / PIECE;

    return launch(gradients<T>{e, pieces}, e.rows * pieces * TEAM, stream);
}

} // namespace fsdpi

int fsdpi_gpu_entropy_largest(const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream)
{
    const int failed = fsdpi::launch_lanes<fsdpi::largest_logits>(*entropy, stream);

    return failed != 0 ? failed : fsdpi::launch(fsdpi::joined_maxima{*entropy}, entropy->rows, stream);
}

int fsdpi_gpu_entropy_exponentials(const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream)
{
    const int failed = fsdpi::launch_lanes<fsdpi::exponentials>(*entropy, stream);

    return failed != 0 ? failed : fsdpi::launch(fsdpi::joined_sums{*entropy}, entropy->rows, stream);
}

int fsdpi_gpu_entropy_gradients(const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream)
{
    const int failed = fsdpi::launch(fsdpi::losses{*entropy}, entropy->rows, stream);

    if (failed != 0) {
        return failed;
    }
    return entropy->dtype == FSDP_F32 ? fsdpi::launch_gradients<float>(*entropy, stream)
                                      : fsdpi::launch_gradients<double>(*entropy, stream);
}
