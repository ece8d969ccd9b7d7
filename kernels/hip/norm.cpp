/*
 * Norms: one read of each element. Each thread has a share of them, and writes what it found; the shares are then joined. The sum
 * of squares is exact, and so is the maximum: neither depends on how many shares there are, and which elements are in them.
 */
#include "kernels/hip/element.h"
#include "kernels/host/exact_sum.h"

namespace fsdpi
{

/* The fewest elements of a share, but the last: what it writes is little beside them. The most shares there are keep any GPU busy. */
enum { LOG_CHUNK = 6, CHUNK = 1 << LOG_CHUNK, SHARE = 4 * CHUNK, MOST_SHARES = 1 << 16, FAN_IN = 64 };

inline size_t shares_of(size_t count)
{
    const size_t shares = (count + SHARE - 1) / SHARE;

    return shares < MOST_SHARES ? shares : static_cast<size_t>(MOST_SHARES);
}

/* ---- the sum of squares ------------------------------------------------------------------------------------------ */

/* Two bins (exact_sum.h) that stay where they are as long as the chunks fit in, and the sum that has all the rest. */
struct squares {
    typedef int64_t word;
    enum { WORDS = FSDPI_SUM_WORDS, STEP = 52 - LOG_CHUNK, SLACK = 6, MOST_CHUNKS = 1024 };

    fsdpi_exact_sum sum;
    int64_t         high, low; /* in the units of both */
    uint32_t        smallest;  /* exponent that the bins take; 0: there are none */
    unsigned        last, chunks;

    static FSDPI_DEVICE word join(word a, word b)
    {
        return a + b;
    }

    FSDPI_DEVICE void begin()
    {
        sum      = fsdpi_exact_sum{};
        smallest = 0;
        high = low = 0;
        last = chunks = 0;
    }

    FSDPI_DEVICE void flush()
    {
        fsdpi_exact_sum_add(&sum, high, last + STEP);
        fsdpi_exact_sum_add(&sum, low, last);
        high = low = 0;
        chunks     = 0;
    }

    FSDPI_DEVICE void add_one(float x)
    {
        fsdpi_exact_sum_add_square(&sum, fsdpi_f32_bits(x));
    }

    /* Whether there are bins now that take magnitudes with these exponents. */
    FSDPI_DEVICE bool fits(uint32_t least, uint32_t most, int fraction)
    {
        if (smallest == 0 || least < smallest || chunks == MOST_CHUNKS ||
            fsdpi_bins_needed(static_cast<int>(most - smallest), fraction, LOG_CHUNK) > 2) {
            const uint32_t wanted = least > SLACK ? least - SLACK : 1;

            flush();
            smallest = fsdpi_bins_needed(static_cast<int>(most - wanted), fraction, LOG_CHUNK) > 2 ? least : wanted;
            last     = fsdpi_last_bin(smallest << 23, fraction);
        }
        return fsdpi_bins_needed(static_cast<int>(most - smallest), fraction, LOG_CHUNK) <= 2;
    }

    FSDPI_DEVICE void add_in_bins(const float *x)
    {
        const uint64_t start[2] = {fsdpi_bin_start(last + STEP), fsdpi_bin_start(last)};
        double         bins[2]  = {f64_from_bits(start[0]), f64_from_bits(start[1])};

        FSDPI_UNROLL
        for (int k = 0; k < CHUNK; k++) {
            const double square = static_cast<double>(x[k]) * static_cast<double>(x[k]), before = bins[0];

            bins[0] = before + square;
            bins[1] += square - (bins[0] - before);
        }
        high += static_cast<int64_t>(fsdpi_f64_bits(bins[0]) - start[0]);
        low += static_cast<int64_t>(fsdpi_f64_bits(bins[1]) - start[1]);
        chunks++;
    }

    /* False: they are to be added one by one. */
    FSDPI_DEVICE bool add_chunk(const float *x, int fraction)
    {
        uint32_t most = 0, least = 0xffffffffU; /* the smallest but zero, less 1 */

        FSDPI_UNROLL
        for (int k = 0; k < CHUNK; k++) {
            const uint32_t magnitude = fsdpi_f32_bits(x[k]) & 0x7fffffffU;

            most  = magnitude > most ? magnitude : most;
            least = magnitude - 1 < least ? magnitude - 1 : least;
        }
        least += 1;
        if (most == 0) {
            return true;
        }
        if (most >= 0x7f800000U || least < 0x00800000U || !fits(least >> 23, most >> 23, fraction)) {
            return false;
        }
        add_in_bins(x);
        return true;
    }

    FSDPI_DEVICE void end(word *words)
    {
        flush();
        fsdpi_exact_sum_carry(&sum);
        for (int w = 0; w < FSDPI_SUM_DIGITS; w++) {
            store<1>(words + w, packet<word, 1>{{sum.digits[w]}});
        }
        store<1>(words + FSDPI_SUM_DIGITS, packet<word, 1>{{sum.infinities}});
        store<1>(words + FSDPI_SUM_DIGITS + 1, packet<word, 1>{{sum.nans}});
    }
};

/* ---- the maximum ------------------------------------------------------------------------------------------------- */

struct largest {
    typedef double word;
    enum { WORDS = 1 };

    double most;

    static FSDPI_DEVICE word join(word a, word b)
    {
        return b > a || is_nan(b) ? b : a;
    }

    FSDPI_DEVICE void begin()
    {
        most = 0;
    }

    template <class X> FSDPI_DEVICE void add_one(X x)
    {
        const double value = static_cast<double>(x);

        most = join(most, value < 0 ? -value : value);
    }

    template <class X> FSDPI_DEVICE bool add_chunk(const X *x, int)
    {
        FSDPI_UNROLL
        for (int k = 0; k < CHUNK; k++) {
            add_one(x[k]);
        }
        return true;
    }

    FSDPI_DEVICE void end(word *words)
    {
        store<1>(words, packet<word, 1>{{most}});
    }
};

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* Vectors number i, i + n and so on are in share i of n; and single elements alike. */
template <class T, class Norm, int N> struct shares {
    typedef typename element<T>::working working;

    const T             *x;
    cut                  plan;
    size_t               n;
    int                  fraction;
    typename Norm::word *words;

    FSDPI_DEVICE void load_chunk(size_t vector, working *chunk) const
    {
        FSDPI_UNROLL
        for (int p = 0; p < CHUNK / N; p++) {
            const size_t v    = vector + static_cast<size_t>(p) * n;
            packet<T, N> next = {};

            if (v < plan.n_vectors) {
                next = load<N>(x + plan.head + v * N);
            }
            FSDPI_UNROLL
            for (int k = 0; k < N; k++) {
                chunk[p * N + k] = widen(next.at[k]);
            }
        }
    }

    /* Loaded anew: registers have no numbers at run time. */
    FSDPI_DEVICE void add_one_by_one(size_t vector, Norm *norm) const
    {
        for (size_t v = vector; v < plan.n_vectors && v < vector + CHUNK / N * n; v += n) {
            for (int k = 0; k < N; k++) {
                norm->add_one(widen(load<1>(x + plan.head + v * N + k).at[0]));
            }
        }
    }

    FSDPI_DEVICE void one(size_t share) const
    {
        const size_t in_vectors = plan.n_vectors * N;
        Norm         norm;
        working      chunk[CHUNK];

        norm.begin();
        for (size_t v = share; v < plan.n_vectors; v += n * (CHUNK / N)) {
            load_chunk(v, chunk);
            if (!norm.add_chunk(chunk, fraction)) {
                add_one_by_one(v, &norm);
            }
        }
        for (size_t i = share; i < plan.count - in_vectors; i += n) {
            norm.add_one(widen(load<1>(x + (i < plan.head ? i : i + in_vectors)).at[0]));
        }
        norm.end(words + share * Norm::WORDS);
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t share = thread; share < n; share += n_threads) {
            one(share);
        }
    }
};

/* Word by word, FAN_IN shares in a row become one. `onto`: joined with what is there already. */
template <class Norm> struct fewer {
    typedef typename Norm::word word;

    const word *words;
    size_t      n;
    word       *folded;
    bool        onto;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t t = thread; t < (n + FAN_IN - 1) / FAN_IN * Norm::WORDS; t += n_threads) {
            const size_t first = t / Norm::WORDS * FAN_IN, w = t % Norm::WORDS;
            const size_t last   = n - first < FAN_IN ? n : first + FAN_IN;
            word         so_far = load<1>(words + first * Norm::WORDS + w).at[0];

            FSDPI_UNROLL_BY4
            for (size_t s = first + 1; s < last; s++) {
                so_far = Norm::join(so_far, load<1>(words + s * Norm::WORDS + w).at[0]);
            }
            if (onto) {
                so_far = Norm::join(load<1>(folded + t).at[0], so_far);
            }
            store<1>(folded + t, packet<word, 1>{{so_far}});
        }
    }
};

/* By turns from one half of the scratch memory into the other, and at last into the result. */
/* NOLINTBEGIN(readability-non-const-parameter): clang-tidy does not see through the kernels' templates */
template <class Norm>
int fold_all(typename Norm::word *words, size_t n, typename Norm::word *result, fsdpi_gpu_stream stream)
{
    typename Norm::word *other  = words + n * Norm::WORDS;
    int                  failed = 0;

    while (n > FAN_IN && failed == 0) {
        const size_t         groups = (n + FAN_IN - 1) / FAN_IN;
        typename Norm::word *folded = other;

        failed = launch(fewer<Norm>{words, n, folded, false}, groups * Norm::WORDS, stream);
        other  = words;
        words  = folded;
        n      = groups;
    }
    return failed != 0 ? failed : launch(fewer<Norm>{words, n, result, true}, Norm::WORDS, stream);
}

template <class Norm> struct norm_call {
    typename Norm::word *result;
    const void          *x;
    size_t               count;
    fsdp_dtype           dtype;
    void                *scratch;
    fsdpi_gpu_stream     stream;

    template <class T> int on() const
    {
        constexpr int        N      = 16 / sizeof(T);
        const operand        in     = {x, sizeof(T)};
        const size_t         n      = shares_of(count);
        typename Norm::word *words  = static_cast<typename Norm::word *>(scratch);
        const int            failed = launch(shares<T, Norm, N>{static_cast<const T *>(x), cut_for(&in, 1, count, N), n,
                                                                fsdpi_fraction_bits(dtype), words},
                                             n, stream);

        return failed != 0 || n == 0 ? failed : fold_all<Norm>(words, n, result, stream);
    }
};

/* NOLINTEND(readability-non-const-parameter) */

/* Squares of f64 are beyond what the sum holds. */
template <> template <> int norm_call<squares>::on<double>() const
{
    return static_cast<int>(hipErrorInvalidValue);
}

} // namespace fsdpi

size_t fsdpi_gpu_norm_scratch(size_t count)
{
    const size_t n = fsdpi::shares_of(count);

    return (n + (n + fsdpi::FAN_IN - 1) / fsdpi::FAN_IN) * sizeof(fsdpi_exact_sum);
}

int fsdpi_gpu_sum_squares(fsdpi_exact_sum *sum, const void *x, size_t count, fsdp_dtype dtype, void *scratch,
                          fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype,
                                  fsdpi::norm_call<fsdpi::squares>{sum->digits, x, count, dtype, scratch, stream});
}

int fsdpi_gpu_absolute_maximum(double *most, const void *x, size_t count, fsdp_dtype dtype, void *scratch,
                               fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype, fsdpi::norm_call<fsdpi::largest>{most, x, count, dtype, scratch, stream});
}
