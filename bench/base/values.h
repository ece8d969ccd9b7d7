/**
 * @file
 * Small integers as elements of any type, by code of its own: the library's conversions are what is under test.
 */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include <fsdp/dtype.h>

/**
 * Stores `n` values, none below 0, each divided by `divisor` (1 or more) as FSDP_AVG does: in f64 for f64, in f32 for the
 * shorter ones with one rounding to nearest even at the end, truncated for integers.
 */
void bench_values_store(fsdp_dtype dtype, const int32_t *values, size_t n, int divisor, void *elements);

#endif
