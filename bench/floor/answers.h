/**
 * @file
 * Inputs of two ranks that make sums of f32 round, and what each collective must make of them, bit by bit. With two
 * operands every order of reduction gives the same sum, so that the library, the floor and MPI all have to meet it.
 */
#ifndef BENCH_ANSWERS_H
#define BENCH_ANSWERS_H

#include "bench/base/collective.h"

/** Writes this rank's input, and nonsense to the output. Local. */
void bench_answers_fill(const bench_case *c, int rank, unsigned pattern, float *in, float *out);

/** ELEMENTS of this rank's output that are not, bit by bit, what that must give. Local. */
size_t bench_answers_wrong(const bench_case *c, int rank, unsigned pattern, const float *out);

#endif
