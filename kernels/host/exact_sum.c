/**
 * @file
 * What an exact sum is in f64.
 */
#include "kernels/host/exact_sum.h"

#include <math.h>

/** The 64 bits from the leading one on, the last of them set if any behind it is, and the position of that last one. */
static uint64_t leading_bits(const fsdpi_exact_sum *sum, int top, int *position)
{
    const uint64_t first  = (uint64_t)sum->digits[top];
    const int      zeros  = __builtin_clzll(first);
    uint64_t       bits   = first << zeros;
    int            filled = 64 - zeros;
    bool           more   = false;

    *position = 32 * top - zeros;
    for (int k = top - 1; k >= 0; k--) {
        const uint64_t digit = (uint64_t)sum->digits[k];
        const int      room  = 64 - filled;

        if (room >= 32) {
            bits |= digit << (room - 32);
            filled += 32;
        } else {
            bits |= digit >> (32 - room);
            more   = more || (digit & (((uint64_t)1 << (32 - room)) - 1)) != 0;
            filled = 64;
        }
    }
    return bits | more;
}

double fsdpi_exact_sum_value(const fsdpi_exact_sum *sum)
{
    fsdpi_exact_sum carried = *sum;
    int             top     = FSDPI_SUM_DIGITS - 1, position;

    if (sum->nans > 0 || sum->infinities > 0) {
        return sum->nans > 0 ? (double)NAN : (double)INFINITY;
    }
    fsdpi_exact_sum_carry(&carried);
    while (top > 0 && carried.digits[top] == 0) {
        top--;
    }
    if (carried.digits[top] == 0) {
        return 0.0;
    }
    const uint64_t bits = leading_bits(&carried, top, &position);

    return ldexp((double)bits, position - 298);
}
