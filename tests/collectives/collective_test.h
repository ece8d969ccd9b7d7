/**
 * @file
 * What the tests of the collectives share: two contexts, inputs that every rank can compute for every other, a serial
 * reference, and guarded buffers.
 */
#ifndef FSDP_TESTS_COLLECTIVE_TEST_H
#define FSDP_TESTS_COLLECTIVE_TEST_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/collectives.h"
#include "tests/support/mpi_test.h"

/** `*state` of each test. */
typedef struct contexts {
    fsdp_context *each[2]; /* default settings; and messages and staging memory so small that everything is cut up */
    int           rank;
    int           size;
} contexts;

enum { N_CONTEXTS = 2 };

/** Group fixtures. */
int open_contexts(void **state);
int close_contexts(void **state);

/** Counts that are 0, 1, odd, prime, even, and around the limits of the small context. */
extern const size_t COUNTS[];
extern const size_t N_COUNTS;

/** A buffer with guard bytes around it; 0 elements are allowed. */
void *guarded_alloc(size_t count, fsdp_dtype dtype);
/** Fails the test if the guards were written to. */
void guarded_free(void *buffer);

/** Fills `count` elements with what rank `rank` contributes, from its element `begin` on. Sums are not exact in f32. */
void contribute(void *buffer, int rank, size_t begin, size_t count, fsdp_dtype dtype);

/**
 * The reduction of all `size` ranks' contributions from element `begin` on, computed serially, in plain C: in rank order
 * within each node of the contexts, and then over these.
 */
void reduce_serially(void *result, int size, size_t begin, size_t count, fsdp_dtype dtype, fsdp_redop op);

/** Fails with the place where two arrays differ in a bit. */
void assert_same(const void *expected, const void *found, size_t count, fsdp_dtype dtype);

/** Uneven counts with zeros among them: a pure function of the rank. Returns their sum. */
size_t uneven_counts(size_t *counts, int size, size_t scale);

#endif
