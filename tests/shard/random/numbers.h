/**
 * @file
 * Arithmetic of the reference, written from definitions: random draws, the two 16-bit types, and an exact sum of squares.
 */
#ifndef FSDP_TESTS_RANDOM_NUMBERS_H
#define FSDP_TESTS_RANDOM_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/dtype.h"

/* ---- random draws: SplitMix64 (Steele, Lea and Flood, 2014) ------------------------------------------------------ */

typedef struct random_draws {
    uint64_t state;
} random_draws;

/** Draws that depend on nothing but these two numbers. */
random_draws random_draws_of(uint64_t seed, uint64_t part);
uint64_t     draw_bits(random_draws *draws);
/** 0 to n - 1. */
size_t draw_below(random_draws *draws, size_t n);
/** True in so many of 100 cases. */
bool   draw_chance(random_draws *draws, unsigned percent);
double draw_uniform(random_draws *draws, double from, double to);

/** A number from -1 up to 1 with 24 random bits, the same for the same four keys. */
float hashed_number(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* ---- 16-bit types ------------------------------------------------------------------------------------------------ */

/** The nearest number of a type, of two that are equally near the even one; infinite from where the type overflows. */
float nearest_of(fsdp_dtype dtype, float x);

/** Element `i` of an array of FSDP_F32, FSDP_BF16 or FSDP_F16. */
float read_element(fsdp_dtype dtype, const void *array, size_t i);
/** `x` is a number of that type, or is rounded to one. */
void write_element(fsdp_dtype dtype, void *array, size_t i, float x);

/** Bits are the same; NaN is NaN. */
bool same_double(double a, double b);

/* ---- norms ------------------------------------------------------------------------------------------------------- */

enum { EXACT_LIMBS = 24 };

/** A sum of squares of f32 in fixed point, 32 bits a limb, from 2^-300 on. */
typedef struct exact_squares {
    uint64_t limbs[EXACT_LIMBS];
    bool     infinite, nan;
} exact_squares;

void add_square(exact_squares *sum, float x);
/** The square root of the sum: each rounded to f64 once. */
double root_of(exact_squares sum);

#endif
