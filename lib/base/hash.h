/**
 * @file
 * 64-bit FNV-1a (Fowler, Noll and Vo), for fingerprints of a few words.
 */
#ifndef FSDPI_HASH_H
#define FSDPI_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FSDPI_HASH_START 0xcbf29ce484222325u

static inline uint64_t fsdpi_hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    }
    return hash;
}

/** A quick mix of one word into a hash, where FNV's eight steps cost too much. */
static inline uint64_t fsdpi_hash_word(uint64_t hash, uint64_t value)
{
    const uint64_t mixed = (hash ^ value ^ FSDPI_HASH_START) * 0x9e3779b97f4a7c15u;

    return mixed ^ mixed >> 29;
}

/**
 * A mix of a word in which each bit depends on all, for hashes that are added up: the finalizer of SplitMix64 (Steele et al., "Fast
 * Splittable Pseudorandom Number Generators", 2014).
 */
static inline uint64_t fsdpi_hash_mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static inline uint64_t fsdpi_hash_u64(uint64_t hash, uint64_t value)
{
    return fsdpi_hash_bytes(hash, &value, sizeof value);
}

/** The terminating NUL is hashed too, so that "a","bc" and "ab","c" differ. */
static inline uint64_t fsdpi_hash_text(uint64_t hash, const char *text)
{
    return fsdpi_hash_bytes(hash, text, strlen(text) + 1);
}

#endif
