#include "fsdp/random.h"

#include <math.h>
#include <string.h>

#include "lib/base/hash.h"

#define PHILOX_ROUNDS 10

static const double TWO_PI = 6.283185307179586476925286766559;

/* One round: two 32 x 32 -> 64 bit products, their halves crossed over and mixed with the key. */
static void philox_round(uint32_t counter[4], const uint32_t key[2])
{
    const uint64_t product0 = (uint64_t)0xD2511F53u * counter[0];
    const uint64_t product1 = (uint64_t)0xCD9E8D57u * counter[2];
    const uint32_t mixed0   = (uint32_t)(product1 >> 32) ^ counter[1] ^ key[0];
    const uint32_t mixed2   = (uint32_t)(product0 >> 32) ^ counter[3] ^ key[1];

    counter[0] = mixed0;
    counter[1] = (uint32_t)product1;
    counter[2] = mixed2;
    counter[3] = (uint32_t)product0;
}

static void philox(uint64_t seed, uint64_t stream, uint64_t block, uint64_t out[2])
{
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
    uint32_t key[2]     = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(counter, key);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    out[0] = (uint64_t)counter[1] << 32 | counter[0];
    out[1] = (uint64_t)counter[3] << 32 | counter[2];
}

static double uniform_of_bits(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t fsdp_random_stream(const char *name)
{
    return fsdpi_hash_bytes(FSDPI_HASH_START, name, strlen(name));
}

uint64_t fsdp_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t words[2];

    philox(seed, stream, index, words);
    return words[0];
}

double fsdp_random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return uniform_of_bits(fsdp_random_bits(seed, stream, index));
}

double fsdp_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t words[2];

    philox(seed, stream, index, words);
    /* 1 - u lies in (0, 1], where the logarithm is finite. */
    return sqrt(-2.0 * log(1.0 - uniform_of_bits(words[0]))) * cos(TWO_PI * uniform_of_bits(words[1]));
}
