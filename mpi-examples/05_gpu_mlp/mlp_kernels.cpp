/*
 * The network's kernels, for AMD's GPUs and NVIDIA's. A kernel is an object whose go() each thread calls; load() and store()
 * are how it touches memory. Both are kernels/hip/launch.h's, by which the tests run the same source without a GPU.
 */
#include "mlp_kernels.h"

#include <math.h>

#include "kernels/hip/launch.h"

namespace
{

using fsdpi::load;
using fsdpi::packet;
using fsdpi::store;

FSDPI_DEVICE float read(const float *from)
{
    return load<1>(from).at[0];
}

template <class T> FSDPI_DEVICE void write(T *to, T value)
{
    store<1>(to, packet<T, 1>{{value}});
}

/*
 * A tile of 4 x 4 elements for each thread, in its registers: each number that it loads serves four products. Threads that
 * are neighbours have neighbouring tiles of a row, and so find much of what they load in the cache. Libraries of matrix
 * products are several times as fast, by what is particular to a GPU: memory of a block, and units for small matrices.
 */
struct multiply {
    enum { TILE = 4 };

    mlp_product p;
    size_t      tiles_across, tiles;

    FSDPI_DEVICE static size_t least(size_t a, size_t b)
    {
        return a < b ? a : b;
    }

    FSDPI_DEVICE void finish(size_t row, size_t column, float value) const
    {
        const size_t at = row * p.columns + column;

        value += p.bias ? read(p.bias + column) : 0.0F;
        if ((p.rectify && value < 0.0F) || (p.gate && read(p.gate + at) <= 0.0F)) {
            value = 0.0F;
        }
        write(p.out + at, value);
    }

    /* Rows and columns beyond the end are taken to be the last one, and not written. */
    FSDPI_DEVICE void one_tile(size_t row, size_t column) const
    {
        float  sums[TILE][TILE] = {};
        size_t a[TILE], b[TILE];

        FSDPI_UNROLL
        for (size_t i = 0; i < TILE; i++) {
            a[i] = least(row + i, p.rows - 1) * p.a.row;
            b[i] = least(column + i, p.columns - 1) * p.b.column;
        }
        for (size_t s = 0; s < p.steps; s++) {
            float left[TILE], right[TILE];

            FSDPI_UNROLL
            for (size_t i = 0; i < TILE; i++) {
                left[i]  = read(p.a.data + a[i] + s * p.a.column);
                right[i] = read(p.b.data + b[i] + s * p.b.row);
            }
            FSDPI_UNROLL
            for (size_t i = 0; i < TILE; i++) {
                FSDPI_UNROLL
                for (size_t k = 0; k < TILE; k++) {
                    sums[i][k] += left[i] * right[k];
                }
            }
        }
        FSDPI_UNROLL
        for (size_t i = 0; i < TILE; i++) {
            FSDPI_UNROLL
            for (size_t k = 0; k < TILE; k++) {
                if (row + i < p.rows && column + k < p.columns) {
                    finish(row + i, column + k, sums[i][k]);
                }
            }
        }
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t tile = thread; tile < tiles; tile += n_threads) {
            one_tile(tile / tiles_across * TILE, tile % tiles_across * TILE);
        }
    }
};

struct activate {
    mlp_activation a;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t i = thread; i < a.rows * a.columns; i += n_threads) {
            const float value = read(a.values + i) + read(a.bias + i % a.columns);

            write(a.values + i, a.rectify && value < 0.0F ? 0.0F : value);
        }
    }
};

/* A thread per column. */
struct add_up {
    mlp_sum s;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t column = thread; column < s.columns; column += n_threads) {
            float total = 0.0F;

            for (size_t row = 0; row < s.rows; row++) {
                total += read(s.data + row * s.columns + column);
            }
            write(s.out + column, total);
        }
    }
};

/* A thread per row: there are ten columns. */
struct cross_entropy {
    mlp_loss l;

    FSDPI_DEVICE size_t largest(const float *logits) const
    {
        size_t best = 0;

        for (size_t c = 1; c < l.columns; c++) {
            best = read(logits + c) > read(logits + best) ? c : best;
        }
        return best;
    }

    FSDPI_DEVICE void one_row(size_t row) const
    {
        float       *logits = l.logits + row * l.columns, total = 0.0F;
        const size_t label = load<1>(l.labels + row).at[0], best = largest(logits);
        const float  most = read(logits + best), own = read(logits + label) - most;

        for (size_t c = 0; c < l.columns; c++) {
            const float part = expf(read(logits + c) - most);

            write(logits + c, part);
            total += part;
        }
        for (size_t c = 0; c < l.columns; c++) {
            write(logits + c, (read(logits + c) / total - (c == label ? 1.0F : 0.0F)) * l.scale);
        }
        write(l.losses + row, logf(total) - own);
        write(l.found + row, static_cast<unsigned char>(best == label));
    }

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (size_t row = thread; row < l.rows; row += n_threads) {
            one_row(row);
        }
    }
};

} // namespace

int mlp_launch_multiply(const mlp_product *product, void *stream)
{
    const size_t across = (product->columns + multiply::TILE - 1) / multiply::TILE;
    const size_t down   = (product->rows + multiply::TILE - 1) / multiply::TILE;

    return fsdpi::launch(multiply{*product, across, across * down}, across * down, stream);
}

int mlp_launch_activate(const mlp_activation *activation, void *stream)
{
    return fsdpi::launch(activate{*activation}, activation->rows * activation->columns, stream);
}

int mlp_launch_sum(const mlp_sum *sum, void *stream)
{
    return fsdpi::launch(add_up{*sum}, sum->columns, stream);
}

int mlp_launch_loss(const mlp_loss *loss, void *stream)
{
    return fsdpi::launch(cross_entropy{*loss}, loss->rows, stream);
}
