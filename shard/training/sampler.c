#include "fsdp/sampler.h"

#include "fsdp/random.h"
#include "lib/base/error.h"

enum { FEISTEL_ROUNDS = 8 };

fsdp_status fsdp_sampler_check(const fsdp_sampler *sampler)
{
    if (sampler == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_sampler_check: `sampler` is NULL");
    }
    if (sampler->dataset < 1) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_sampler.dataset is 0; there must be at least 1 sample");
    }
    if (sampler->size < 1 || sampler->rank < 0 || sampler->rank >= sampler->size) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_sampler: rank %d of %d ranks; ranks are 0 to size - 1",
                          sampler->rank, sampler->size);
    }
    if (sampler->drop_last && sampler->dataset < (size_t)sampler->size) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_sampler: drop_last leaves nothing of %zu samples on %d ranks; use "
                          "fewer ranks or set drop_last to 0",
                          sampler->dataset, sampler->size);
    }
    return FSDP_OK;
}

size_t fsdp_sampler_length(const fsdp_sampler *sampler)
{
    const size_t size = (size_t)sampler->size;

    return sampler->dataset / size + (!sampler->drop_last && sampler->dataset % size != 0);
}

/* Half of the bits that numbers below `n` have, rounded up. */
static unsigned half_bits(size_t n)
{
    unsigned bits = 0;

    for (size_t largest = n - 1; largest > 0; largest >>= 1) {
        bits++;
    }
    return (bits + 1) / 2;
}

/* A permutation of the numbers of 2 x `half` bits. */
static uint64_t feistel(uint64_t seed, uint64_t number, unsigned half)
{
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t       left = number >> half, right = number & mask;

    for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
        const uint64_t mixed = left ^ (fsdp_random_bits(seed, round, right) & mask);
        left                 = right;
        right                = mixed;
    }
    return left << half | right;
}

/* Numbers beyond the data set are permuted again: they end inside after at most 4 tries on average. */
static size_t permuted(const fsdp_sampler *sampler, uint64_t epoch, size_t position)
{
    const unsigned half   = half_bits(sampler->dataset);
    uint64_t       number = position;

    if (half == 0) {
        return 0;
    }
    do {
        number = feistel(sampler->seed + epoch, number, half);
    } while (number >= sampler->dataset);
    return (size_t)number;
}

size_t fsdp_sampler_index(const fsdp_sampler *sampler, uint64_t epoch, size_t i)
{
    const size_t position = (i * (size_t)sampler->size + (size_t)sampler->rank) % sampler->dataset;

    return sampler->shuffle ? permuted(sampler, epoch, position) : position;
}
