/**
 * @file
 * What the kernel tests share: the tables to test, arrays with fences around them, values that are likely to break
 * something, and comparison bit by bit.
 */
#ifndef FSDP_TESTS_KERNEL_TEST_H
#define FSDP_TESTS_KERNEL_TEST_H

/* cmocka.h wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/kernels.h"

/** Runs the tests of an array; argv[1], if there is one, names the only table to be tested. */
#define kernel_test_main(argc, argv, tests) (choose_tables(argc, argv), cmocka_run_group_tests(tests, NULL, NULL))

void choose_tables(int argc, char **argv);

/** The tables of this build and this processor but the scalar one, ended by NULL. */
extern const fsdpi_kernels *tables_under_test[4];

enum { MAX_ARRAYS = 12, MAX_ARRAY_BYTES = 1 << 15, AT_END = -1 };

/**
 * An array of `bytes` BYTES, `offset` BYTES beyond a multiple of 64; or, with AT_END, directly before memory that ends
 * the program if touched. Each of the MAX_ARRAYS numbers names one array: asked for again, it moves.
 */
void *fenced_array(size_t number, size_t bytes, ptrdiff_t offset);

/** Fails if a byte around one of the arrays has changed since fenced_array(). */
void assert_fences_stand(void);

/** Pseudorandom 64 bits; the same series in every run. */
uint64_t random_bits(void);

/** Any bits, with one element in four a NaN, infinity, subnormal, zero, largest or smallest value and the like. */
void fill_with_any_values(void *x, size_t count, fsdp_dtype dtype);

/** Fails unless each element has the same bits in both, or is NaN in both. `what` is printed before. */
void assert_same_or_both_nan(const void *expected, const void *found, size_t count, fsdp_dtype dtype, const char *what);

size_t element_bytes(fsdp_dtype dtype);

/**
 * The units in BYTES, ended by 0, whose multiples arrays of a type may begin at: an element; and one byte, where the tables
 * under test take any address.
 */
const size_t *units_of(fsdp_dtype dtype);

/** Counts around which tails and blocks differ: 0 to 130, and some primes beyond, ended by SIZE_MAX. */
extern const size_t tail_counts[];

enum { N_FLOATS = 4 };
extern const fsdp_dtype floats[N_FLOATS];

/** A kernel that changes floating-point elements where they are, by a factor or a limit: that of a table. */
typedef void (*in_place_kernel)(void *x, double value, size_t count, fsdp_dtype dtype);
typedef in_place_kernel (*in_place_kernel_of)(const fsdpi_kernels *kernels);

/** Fails unless those under test do as the reference does, on any values: with tails of any length and each of `n` values. */
void assert_in_place_for_tails(in_place_kernel_of kernel_of, const double *values, size_t n);

/** The same at any alignment, and directly before memory that ends the program; nothing around the array changes. */
void assert_in_place_anywhere(in_place_kernel_of kernel_of);

#endif
