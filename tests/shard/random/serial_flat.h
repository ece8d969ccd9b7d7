/**
 * @file
 * Flat parameters, where they show in results: blocks of 8-bit integers run over the tensors of one.
 */
#ifndef FSDP_TESTS_RANDOM_SERIAL_FLAT_H
#define FSDP_TESTS_RANDOM_SERIAL_FLAT_H

#include "tests/shard/random/serial.h"

/** Tensors that are gathered and reduced together, one after the other: see fsdp/layout.h. */
typedef struct serial_flat {
    size_t n;
    size_t names[MOST_TENSORS];   /* as the unit knows them */
    size_t offsets[MOST_TENSORS]; /* ELEMENTS */
    size_t slice;                 /* ELEMENTS of each rank's */
    size_t padded;                /* ELEMENTS of all, and of padding */
} serial_flat;

/** That of the unit of tensor `name`; empty if an earlier tensor of the unit belongs to the same. */
serial_flat serial_flat_of(const serial_model *s, size_t name);

/** A block of at most that many elements as int8 with one scale, in place. */
void round_to_int8(float *values, size_t n);

#endif
