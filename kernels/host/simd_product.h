/**
 * @file
 * Products of matrices, in blocks as Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), lay them
 * out: of B a block of FSDPI_PRODUCT_DEPTH rows, of A a block that fits the second-level cache, both copied into panels that the
 * innermost loop reads in order; and of C a tile in registers. Rows and columns that a tile has beyond the matrix are zeros in
 * the panels and are not stored. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_PRODUCT_H
#define FSDPI_KERNELS_HOST_SIMD_PRODUCT_H

#include "kernels/host/simd.h"
#include "kernels/kernels.h"

enum {
    TILE_ROWS    = SIMD_BYTES == 32 ? 6 : 12, /* AVX2 has 16 registers; AVX-512 and NEON have 32 */
    TILE_VECTORS = 2,
    BLOCK_ROWS   = 96,     /* of A; a multiple of TILE_ROWS */
    BLOCK_BYTES  = 512 * 4 /* of a row of B */
};
_Static_assert(BLOCK_ROWS % TILE_ROWS == 0 && BLOCK_BYTES % (TILE_VECTORS * SIMD_BYTES) == 0, "whole tiles");
_Static_assert(FSDPI_PRODUCT_WORK_BYTES == FSDPI_PRODUCT_DEPTH * (BLOCK_ROWS * 8 + BLOCK_BYTES),
               "room for both blocks");

SIMD_INLINE size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** c + a b, rounded once. */
SIMD_INLINE simd simd_add_product(simd c, simd a, simd b, fsdp_dtype dtype)
{
    return dtype == FSDP_F64 ? (simd)simd_f64_add_product((simd_f64)c, (simd_f64)a, (simd_f64)b)
                             : (simd)simd_f32_add_product((simd_f32)c, (simd_f32)a, (simd_f32)b);
}

SIMD_INLINE simd simd_splat_value(double value, fsdp_dtype dtype)
{
    return dtype == FSDP_F64 ? (simd)simd_f64_splat(value) : (simd)simd_f32_splat((float)value);
}

SIMD_INLINE simd simd_splat_element(const char *p, fsdp_dtype dtype)
{
    double f64;
    float  f32;

    if (dtype == FSDP_F64) {
        memcpy(&f64, p, sizeof f64);
        return (simd)simd_f64_splat(f64);
    }
    memcpy(&f32, p, sizeof f32);
    return (simd)simd_f32_splat(f32);
}

/** Columns of a tile. */
SIMD_INLINE size_t tile_columns(fsdp_dtype dtype)
{
    return TILE_VECTORS * simd_lanes(dtype);
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

/**
 * Copies `lanes` rows of A, or columns of B, to a panel that has room for `width` of them side by side; `apart`: from one to the
 * next, `along`: from one to the next element of each, both in BYTES.
 */
SIMD_INLINE void pack_panel(char *panel, size_t width, const char *from, size_t lanes, size_t apart, size_t depth,
                            size_t along, fsdp_dtype dtype)
{
    const size_t bytes = fsdpi_element_bytes(dtype);

    if (lanes < width) {
        memset(panel, 0, depth * width * bytes);
    }
    if (apart == bytes) {
        for (size_t k = 0; k < depth; k++) {
            if (lanes == width) {
                memcpy(panel + k * width * bytes, from + k * along, width * bytes);
            } else {
                memcpy(panel + k * width * bytes, from + k * along, lanes * bytes);
            }
        }
        return;
    }
    for (size_t lane = 0; lane < lanes; lane++) {
        for (size_t k = 0; k < depth; k++) {
            memcpy(panel + (k * width + lane) * bytes, from + lane * apart + k * along, bytes);
        }
    }
}

/** Copies `count` rows or columns to panels one behind the other. */
SIMD_INLINE void pack_block(char *panels, size_t width, const char *from, size_t count, size_t apart, size_t depth,
                            size_t along, fsdp_dtype dtype)
{
    const size_t bytes = fsdpi_element_bytes(dtype);

    for (size_t i = 0; i < count; i += width) {
        pack_panel(panels + i * depth * bytes, width, from + i * apart * bytes, smaller(width, count - i),
                   apart * bytes, depth, along * bytes, dtype);
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/** Where a tile is, and how much of it is in the matrix. */
typedef struct tile {
    char       *c;
    const char *base; /* what the sum joins: there, or NULL for zeros */
    size_t      rows, columns;
    double      alpha, factor; /* of the sum, and of `base` */
} tile;

/** One vector of `factor` x `base`, or zeros; `columns` of it are in the matrix, which may be more than it has. */
SIMD_INLINE simd load_base(const char *base, double factor, size_t columns, fsdp_dtype dtype)
{
    if (base == NULL) {
        return (simd){0};
    }
    const simd d = columns >= simd_lanes(dtype) ? simd_load(base, dtype) : simd_load_tail(base, columns, dtype);

    return simd_multiply(simd_splat_value(factor, dtype), d, dtype);
}

SIMD_INLINE void store_columns(char *c, simd x, size_t columns, fsdp_dtype dtype)
{
    if (columns >= simd_lanes(dtype)) {
        simd_store(c, x, dtype);
    } else {
        simd_store_tail(c, x, columns, dtype);
    }
}

/** One vector of a row of a tile. */
SIMD_INLINE void tile_store(const tile *t, size_t offset, size_t columns, simd sum, fsdp_dtype dtype)
{
    const simd c = load_base(t->base != NULL ? t->base + offset : NULL, t->factor, columns, dtype);

    store_columns(t->c + offset, simd_add_product(c, simd_splat_value(t->alpha, dtype), sum, dtype), columns, dtype);
}

/* The sums of a tile, of f32 and of f64: apart, so that all of them stay in registers. */

SIMD_APART void sum_tile_f32(simd *sums, const char *a, const char *b, size_t depth)
{
    simd_f32 sum[TILE_ROWS][TILE_VECTORS];

#pragma GCC unroll 12
    for (size_t i = 0; i < TILE_ROWS; i++) {
        sum[i][0] = sum[i][1] = simd_f32_splat(0);
    }
    for (size_t k = 0; k < depth; k++, a += TILE_ROWS * sizeof(float), b += (size_t)TILE_VECTORS * SIMD_BYTES) {
        const simd_f32 first = (simd_f32)simd_load_any(b), second = (simd_f32)simd_load_any(b + SIMD_BYTES);

#pragma GCC unroll 12
        for (size_t i = 0; i < TILE_ROWS; i++) {
            const simd_f32 factor = (simd_f32)simd_splat_element(a + i * sizeof(float), FSDP_F32);

            sum[i][0] = simd_f32_add_product(sum[i][0], factor, first);
            sum[i][1] = simd_f32_add_product(sum[i][1], factor, second);
        }
    }
    memcpy(sums, sum, sizeof sum);
}

SIMD_APART void sum_tile_f64(simd *sums, const char *a, const char *b, size_t depth)
{
    simd_f64 sum[TILE_ROWS][TILE_VECTORS];

#pragma GCC unroll 12
    for (size_t i = 0; i < TILE_ROWS; i++) {
        sum[i][0] = sum[i][1] = simd_f64_splat(0);
    }
    for (size_t k = 0; k < depth; k++, a += TILE_ROWS * sizeof(double), b += (size_t)TILE_VECTORS * SIMD_BYTES) {
        const simd_f64 first = simd_f64_load(b), second = simd_f64_load(b + SIMD_BYTES);

#pragma GCC unroll 12
        for (size_t i = 0; i < TILE_ROWS; i++) {
            const simd_f64 factor = (simd_f64)simd_splat_element(a + i * sizeof(double), FSDP_F64);

            sum[i][0] = simd_f64_add_product(sum[i][0], factor, first);
            sum[i][1] = simd_f64_add_product(sum[i][1], factor, second);
        }
    }
    memcpy(sums, sum, sizeof sum);
}

/** `row_bytes`: from one row of C to the next. */
SIMD_INLINE void tile_multiply(const tile *t, const char *a, const char *b, size_t depth, size_t row_bytes,
                               fsdp_dtype dtype)
{
    const size_t lanes = simd_lanes(dtype);
    simd         sums[TILE_ROWS * TILE_VECTORS];

    if (dtype == FSDP_F64) {
        sum_tile_f64(sums, a, b, depth);
    } else {
        sum_tile_f32(sums, a, b, depth);
    }
    for (size_t i = 0; i < t->rows; i++) {
        tile_store(t, i * row_bytes, t->columns, sums[i * TILE_VECTORS], dtype);
        if (t->columns > lanes) {
            tile_store(t, i * row_bytes + SIMD_BYTES, t->columns - lanes, sums[i * TILE_VECTORS + 1], dtype);
        }
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/** Of C what lies in rows from `row` on and columns from `column` on, for the depth from `begin` on. */
typedef struct block {
    size_t row, rows, column, columns, begin, depth;
} block;

SIMD_INLINE void block_multiply(const fsdpi_product *p, const block *at, const char *a, const char *b, fsdp_dtype dtype)
{
    const size_t bytes = fsdpi_element_bytes(dtype), width = tile_columns(dtype);
    const char  *base = at->begin == 0 ? p->d : p->c;
    tile         t    = {.alpha = p->alpha, .factor = at->begin == 0 ? p->beta : 1.0};

    if (t.factor == 0.0) {
        base = NULL;
    }
    for (size_t j = 0; j < at->columns; j += width) {
        for (size_t i = 0; i < at->rows; i += TILE_ROWS) {
            const size_t place = ((at->row + i) * p->columns + at->column + j) * bytes;

            if (p->symmetric && at->column + j + width <= at->row + i) {
                continue;
            }
            t.c       = (char *)p->c + place;
            t.base    = base != NULL ? base + place : NULL;
            t.rows    = smaller(TILE_ROWS, at->rows - i);
            t.columns = smaller(width, at->columns - j);
            tile_multiply(&t, a + i * at->depth * bytes, b + j * at->depth * bytes, at->depth, p->columns * bytes,
                          dtype);
        }
    }
}

/** What is below the diagonal, in squares that fit the first-level cache. */
SIMD_INLINE void mirror(char *c, size_t n, fsdp_dtype dtype)
{
    const size_t bytes = fsdpi_element_bytes(dtype), side = 16;

    for (size_t from = 0; from < n; from += side) {
        for (size_t to = from; to < n; to += side) {
            for (size_t i = from; i < smaller(from + side, n); i++) {
                for (size_t j = to > i ? to : i + 1; j < smaller(to + side, n); j++) {
                    memcpy(c + (j * n + i) * bytes, c + (i * n + j) * bytes, bytes);
                }
            }
        }
    }
}

/** Without depth, nothing is added. */
SIMD_INLINE void scale_base(const fsdpi_product *p, fsdp_dtype dtype)
{
    const size_t count = p->rows * p->columns, lanes = simd_lanes(dtype), bytes = fsdpi_element_bytes(dtype);
    const char  *base = p->beta == 0.0 ? NULL : p->d;

    for (size_t i = 0; i < count; i += lanes) {
        const simd c = load_base(base != NULL ? base + i * bytes : NULL, p->beta, count - i, dtype);

        store_columns((char *)p->c + i * bytes, c, count - i, dtype);
    }
}

SIMD_INLINE void multiply_blocks(const fsdpi_product *p, fsdp_dtype dtype)
{
    const size_t bytes = fsdpi_element_bytes(dtype), most_columns = BLOCK_BYTES / bytes;
    char        *b = p->work, *a = b + (size_t)FSDPI_PRODUCT_DEPTH * BLOCK_BYTES;
    block        at;

    for (at.column = 0; at.column < p->columns; at.column += most_columns) {
        at.columns = smaller(most_columns, p->columns - at.column);
        for (at.begin = 0; at.begin < p->depth; at.begin += FSDPI_PRODUCT_DEPTH) {
            at.depth = smaller(FSDPI_PRODUCT_DEPTH, p->depth - at.begin);
            pack_block(b, tile_columns(dtype),
                       (const char *)p->b + (at.begin * p->b_row + at.column * p->b_column) * bytes, at.columns,
                       p->b_column, at.depth, p->b_row, dtype);
            for (at.row = 0; at.row < p->rows; at.row += BLOCK_ROWS) {
                if (p->symmetric && at.column + at.columns <= at.row) {
                    break;
                }
                at.rows = smaller(BLOCK_ROWS, p->rows - at.row);
                pack_block(a, TILE_ROWS, (const char *)p->a + (at.row * p->a_row + at.begin * p->a_column) * bytes,
                           at.rows, p->a_row, at.depth, p->a_column, dtype);
                block_multiply(p, &at, a, b, dtype);
            }
        }
    }
    if (p->depth == 0) {
        scale_base(p, dtype);
    }
    if (p->symmetric) {
        mirror(p->c, p->rows, dtype);
    }
}

SIMD_APART void multiply_f32(const fsdpi_product *p)
{
    multiply_blocks(p, FSDP_F32);
}

SIMD_APART void multiply_f64(const fsdpi_product *p)
{
    multiply_blocks(p, FSDP_F64);
}

static void multiply(const fsdpi_product *p)
{
    if (p->dtype == FSDP_F64) {
        multiply_f64(p);
    } else {
        multiply_f32(p);
    }
}

#endif
