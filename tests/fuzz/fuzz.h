/**
 * @file
 * What libFuzzer calls, and replay.c in its place. An input that is taken where it should not be, or not given back as it came,
 * ends the program.
 */
#ifndef FSDP_TESTS_FUZZ_H
#define FSDP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
