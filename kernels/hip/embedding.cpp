/* Rows of a table, found by words; and gradients added to them, without atomic operations: sums have one order. */
#include "kernels/hip/element.h"

namespace fsdpi
{

/* ---- words of the host ------------------------------------------------------------------------------------------- */

/* In the arguments of a kernel, for which 4 KiB are certain. */
enum { WORDS_PER_LAUNCH = 768 };

struct stored_words {
    int32_t *to;
    size_t   n;
    int32_t  words[WORDS_PER_LAUNCH];

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t i = thread; i < n; i += n_threads) {
            store<1>(to + i, packet<int32_t, 1>{{words[i]}});
        }
    }
};

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* N elements at a time. */
template <class T, int N> struct found_rows {
    fsdpi_gpu_lookup l;
    const T         *table;
    T               *out;

    FSDPI_DEVICE packet<T, N> values(int32_t word, size_t column) const
    {
        const size_t row   = static_cast<size_t>(word) - l.begin; /* of others it wraps around */
        packet<T, N> value = {};

        if (word < 0 || static_cast<size_t>(word) >= l.vocabulary) {
            FSDPI_UNROLL
            for (int k = 0; k < N; k++) {
                value.at[k] = element<T>::from_f64(not_a_number());
            }
        } else if (row < l.count) {
            value = load<N>(table + row * l.width + column);
        }
        return value;
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        const size_t packets = l.width / N;

        for (size_t t = thread; t < l.rows * packets; t += n_threads) {
            const size_t i = t / packets, column = t % packets * N;

            store<N>(out + i * l.width + column, values(load<1>(l.words + i).at[0], column));
        }
    }
};

/* Whether rows of both consist of vectors of N elements. */
inline bool in_vectors(size_t width, size_t n, const void *a, const void *b)
{
    return width % n == 0 && (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
}

struct embed_call {
    const fsdpi_gpu_lookup *l;
    const void             *table;
    void                   *out;
    fsdpi_gpu_stream        stream;

    template <class T> int on() const
    {
        constexpr int N    = 16 / sizeof(T);
        const T      *from = static_cast<const T *>(table);
        T            *to   = static_cast<T *>(out);

        return in_vectors(l->width, N, table, out)
                   ? launch(found_rows<T, N>{*l, from, to}, l->rows * (l->width / N), stream)
                   : launch(found_rows<T, 1>{*l, from, to}, l->rows * l->width, stream);
    }
};

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/*
 * Rows of the same word are a chain, in their order. Of each row: 2 x (1 + the next one, or 0) + whether it is the first. 0 where this rank
 * does not have the word.
 */
struct chains {
    fsdpi_gpu_lookup l;
    uint64_t        *links;

    FSDPI_DEVICE int32_t word(size_t i) const
    {
        return load<1>(l.words + i).at[0];
    }

    FSDPI_DEVICE uint64_t link(size_t i) const
    {
        const int32_t mine  = word(i);
        size_t        after = i + 1, before = i;

        if (mine < 0 || static_cast<size_t>(mine) - l.begin >= l.count) {
            return 0;
        }
        while (after < l.rows && word(after) != mine) {
            after++;
        }
        while (before > 0 && word(before - 1) != mine) {
            before--;
        }
        return 2 * static_cast<uint64_t>(after < l.rows ? after + 1 : 0) + (before == 0 ? 1 : 0);
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t i = thread; i < l.rows; i += n_threads) {
            store<1>(links + i, packet<uint64_t, 1>{{link(i)}});
        }
    }
};

/* For the first row of each chain, N elements at a time. */
template <class T, int N> struct added_rows {
    fsdpi_gpu_lookup l;
    const uint64_t  *links;
    const T         *d_out;
    T               *d_table;

    /* The chain that begins with row `i`. */
    FSDPI_DEVICE void add(size_t i, uint64_t link, size_t column) const
    {
        const size_t row = static_cast<size_t>(load<1>(l.words + i).at[0]) - l.begin;
        T           *to  = d_table + row * l.width + column;
        packet<T, N> sum = load<N>(static_cast<const T *>(to));

        for (;;) {
            const packet<T, N> term = load<N>(d_out + i * l.width + column);

            FSDPI_UNROLL
            for (int k = 0; k < N; k++) {
                sum.at[k] += term.at[k];
            }
            if (link / 2 == 0) {
                break;
            }
            i    = static_cast<size_t>(link / 2 - 1);
            link = load<1>(links + i).at[0];
        }
        store<N>(to, sum);
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        const size_t packets = l.width / N;

        for (size_t t = thread; t < l.rows * packets; t += n_threads) {
            const uint64_t link = load<1>(links + t / packets).at[0];

            if (link % 2 == 1) {
                add(t / packets, link, t % packets * N);
            }
        }
    }
};

template <class T>
int add_rows(const fsdpi_gpu_lookup &l, const uint64_t *links, const void *d_out, void *d_table,
             fsdpi_gpu_stream stream)
{
    constexpr int N    = 16 / sizeof(T);
    const T      *from = static_cast<const T *>(d_out);
    T            *to   = static_cast<T *>(d_table);

    return in_vectors(l.width, N, d_out, d_table)
               ? launch(added_rows<T, N>{l, links, from, to}, l.rows * (l.width / N), stream)
               : launch(added_rows<T, 1>{l, links, from, to}, l.rows * l.width, stream);
}

} // namespace fsdpi

/* NOLINTBEGIN(readability-non-const-parameter): clang-tidy does not see through the kernels' templates */
int fsdpi_gpu_store_words(int32_t *to, const int32_t *words, size_t n, fsdpi_gpu_stream stream)
{
    for (size_t begin = 0; begin < n; begin += fsdpi::WORDS_PER_LAUNCH) {
        const size_t        left   = n - begin;
        fsdpi::stored_words kernel = {
            to + begin, left < fsdpi::WORDS_PER_LAUNCH ? left : static_cast<size_t>(fsdpi::WORDS_PER_LAUNCH), {}};

        memcpy(kernel.words, words + begin, kernel.n * sizeof *words);
        const int failed = fsdpi::launch(kernel, kernel.n, stream);
        if (failed != 0) {
            return failed;
        }
    }
    return 0;
}
/* NOLINTEND(readability-non-const-parameter) */

int fsdpi_gpu_embed(const fsdpi_gpu_lookup *lookup, const void *table, void *out, fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(lookup->dtype, fsdpi::embed_call{lookup, table, out, stream});
}

size_t fsdpi_gpu_embed_scratch(size_t rows)
{
    return rows * sizeof(uint64_t);
}

int fsdpi_gpu_embed_backward(const fsdpi_gpu_lookup *lookup, const void *d_out, void *d_table, void *scratch,
                             fsdpi_gpu_stream stream)
{
    uint64_t *links = static_cast<uint64_t *>(scratch);

    if (lookup->dtype != FSDP_F32 && lookup->dtype != FSDP_F64) {
        return static_cast<int>(hipErrorInvalidValue);
    }
    const int failed = fsdpi::launch(fsdpi::chains{*lookup, links}, lookup->rows, stream);
    if (failed != 0) {
        return failed;
    }
    return lookup->dtype == FSDP_F32 ? fsdpi::add_rows<float>(*lookup, links, d_out, d_table, stream)
                                     : fsdpi::add_rows<double>(*lookup, links, d_out, d_table, stream);
}
