#include "fashion_math.h"

#include <math.h>
#include <string.h>

#define PADDING (FASHION_KERNEL / 2)

/* Where a row of an image, shifted by `shift` columns, has elements of the image: from `begin` up to `end`. */
static void covered(size_t size, size_t shift, size_t *begin, size_t *end)
{
    *begin = shift < PADDING ? PADDING - shift : 0;
    *end   = shift > PADDING ? size - (shift - PADDING) : size;
}

static void shift_map(size_t size, size_t ky, size_t kx, const real *map, real *shifted)
{
    size_t begin, end, top, bottom, y;

    covered(size, kx, &begin, &end);
    covered(size, ky, &top, &bottom);
    memset(shifted, 0, size * size * sizeof *shifted);
    for (y = top; y < bottom; y++) {
        memcpy(shifted + y * size + begin, map + (y + ky - PADDING) * size + (begin + kx - PADDING),
               (end - begin) * sizeof *shifted);
    }
}

static void add_shifted_back(size_t size, size_t ky, size_t kx, const real *restrict shifted, real *restrict map)
{
    size_t begin, end, top, bottom, y, x;

    covered(size, kx, &begin, &end);
    covered(size, ky, &top, &bottom);
    for (y = top; y < bottom; y++) {
        const real *from = shifted + y * size + begin;
        real       *to   = map + (y + ky - PADDING) * size + (begin + kx - PADDING);

        for (x = 0; x < end - begin; x++) {
            to[x] += from[x];
        }
    }
}

void fashion_im2col(size_t maps, size_t size, const real *image, real *columns)
{
    size_t map, ky, kx;

    for (map = 0; map < maps; map++) {
        for (ky = 0; ky < FASHION_KERNEL; ky++) {
            for (kx = 0; kx < FASHION_KERNEL; kx++, columns += size * size) {
                shift_map(size, ky, kx, image + map * size * size, columns);
            }
        }
    }
}

void fashion_col2im(size_t maps, size_t size, const real *columns, real *image)
{
    size_t map, ky, kx;

    memset(image, 0, maps * size * size * sizeof *image);
    for (map = 0; map < maps; map++) {
        for (ky = 0; ky < FASHION_KERNEL; ky++) {
            for (kx = 0; kx < FASHION_KERNEL; kx++, columns += size * size) {
                add_shifted_back(size, ky, kx, columns, image + map * size * size);
            }
        }
    }
}

void fashion_relu_pool(size_t planes, size_t size, const real *restrict in, real *restrict out,
                       unsigned char *restrict chosen)
{
    const size_t half = size / 2;
    size_t       row, x;

    for (row = 0; row < planes * half; row++, out += half, chosen += half) {
        const real *upper = in + 2 * row * size, *lower = upper + size;

        for (x = 0; x < half; x++) {
            const real a = upper[2 * x], b = upper[2 * x + 1], c = lower[2 * x], d = lower[2 * x + 1];
            const real above = b > a ? b : a, below = d > c ? d : c, most = below > above ? below : above;
            const int  which = below > above ? 2 + (d > c) : b > a;

            out[x]    = most > 0 ? most : 0;
            chosen[x] = (unsigned char)(most > 0 ? which : 4);
        }
    }
}

void fashion_relu_pool_backward(size_t planes, size_t size, const real *restrict d_out,
                                const unsigned char *restrict chosen, real *restrict d_in)
{
    const size_t half = size / 2;
    size_t       row, x;

    for (row = 0; row < planes * half; row++, d_out += half, chosen += half) {
        real *upper = d_in + 2 * row * size, *lower = upper + size;

        for (x = 0; x < half; x++) {
            upper[2 * x]     = chosen[x] == 0 ? d_out[x] : 0;
            upper[2 * x + 1] = chosen[x] == 1 ? d_out[x] : 0;
            lower[2 * x]     = chosen[x] == 2 ? d_out[x] : 0;
            lower[2 * x + 1] = chosen[x] == 3 ? d_out[x] : 0;
        }
    }
}

double fashion_softmax(size_t n, real *logits)
{
    double most = (double)logits[0], sum = 0;
    size_t i;

    for (i = 1; i < n; i++) {
        most = (double)logits[i] > most ? (double)logits[i] : most;
    }
    for (i = 0; i < n; i++) {
        const double e = exp((double)logits[i] - most);

        logits[i] = (real)e;
        sum += e;
    }
    for (i = 0; i < n; i++) {
        logits[i] = (real)((double)logits[i] / sum);
    }
    return most + log(sum);
}
