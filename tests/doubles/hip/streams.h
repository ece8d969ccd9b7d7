/**
 * @file
 * What streams carry out.
 */
#ifndef FSDP_TESTS_DOUBLES_HIP_STREAMS_H
#define FSDP_TESTS_DOUBLES_HIP_STREAMS_H

#include "tests/doubles/hip/double.h"

/** Where an operation stands while it is carried out. */
typedef struct double_moment {
    unsigned     stream;
    int          device;
    double_clock clock; /* what comes before it, and itself */
} double_moment;

/** One operation: `run` is called once, by the stream's thread. */
typedef struct double_operation {
    struct double_operation *next;
    void (*run)(struct double_operation *operation, double_moment *now);
    double_clock hosts;    /* what hosts had seen when it was issued */
    uint64_t     asked;    /* how often a host had asked after the stream then */
    bool         pageable; /* reads or writes memory that the runtime does not know */
} double_operation;

/** Takes an operation, allocated by malloc(), into a stream; NULL: the default stream of the thread's device. */
hipError_t double_enqueue(hipStream_t stream, const double_operation *operation, size_t bytes,
                          void (*run)(double_operation *, double_moment *));

#endif
