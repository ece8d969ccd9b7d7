/**
 * @file
 * Sets of small numbers.
 */
#ifndef FSDPI_TOPOLOGY_MASK_H
#define FSDPI_TOPOLOGY_MASK_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/topology.h"

enum { FSDPI_MASK_BITS = 64 * FSDP_MASK_WORDS };

static inline void fsdpi_mask_add(fsdp_mask *mask, int number)
{
    mask->word[number / 64] |= UINT64_C(1) << (number % 64);
}

static inline bool fsdpi_mask_is_empty(const fsdp_mask *mask)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if (mask->word[w] != 0) {
            return false;
        }
    }
    return true;
}

static inline bool fsdpi_mask_equal(const fsdp_mask *a, const fsdp_mask *b)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if (a->word[w] != b->word[w]) {
            return false;
        }
    }
    return true;
}

static inline fsdp_mask fsdpi_mask_both(const fsdp_mask *a, const fsdp_mask *b)
{
    fsdp_mask both;

    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        both.word[w] = a->word[w] & b->word[w];
    }
    return both;
}

static inline bool fsdpi_mask_meets(const fsdp_mask *a, const fsdp_mask *b)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if ((a->word[w] & b->word[w]) != 0) {
            return true;
        }
    }
    return false;
}

/** Whether all of `part` is in `whole`. */
static inline bool fsdpi_mask_within(const fsdp_mask *part, const fsdp_mask *whole)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if ((part->word[w] & ~whole->word[w]) != 0) {
            return false;
        }
    }
    return true;
}

static inline void fsdpi_mask_include(fsdp_mask *mask, const fsdp_mask *more)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        mask->word[w] |= more->word[w];
    }
}

/** The lowest number; -1 of none. */
int fsdpi_mask_first(const fsdp_mask *mask);

/**
 * Reads a list as "0-7" from a file of the system. False where there is none.
 * @param[in] root  in front of /sys: "", or where a test has made it up
 */
bool fsdpi_mask_from_file(const char *root, const char *path, fsdp_mask *mask);

#endif
