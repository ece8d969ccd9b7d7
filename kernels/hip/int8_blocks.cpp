/*
 * f32 as blocks of 8 bit integers with a scale each, and back, in the format of shard/state/int8_blocks.h. A team works on a
 * block: it finds the largest magnitude, and then encodes what lies in the cache by then.
 */
#include "kernels/hip/element.h"

namespace fsdpi
{

enum { STEP = 4 }; /* values that a thread takes at a time */

/* Added to a number below 2^22 it leaves the nearest integer, ties to even, in the lowest bits of the sum. */
#define FSDPI_ROUNDER       0x1.8p23F
#define FSDPI_SMALLEST_F32  0x1p-126F
#define FSDPI_INFINITY_BITS 0x7f800000U

FSDPI_DEVICE bool is_finite(float x)
{
    return (fsdpi_f32_bits(x) & 0x7fffffffU) < FSDPI_INFINITY_BITS;
}

/* From the bits of the largest magnitude. */
FSDPI_DEVICE float scale_of(uint32_t most)
{
    const float scale = fsdpi_f32_from_bits(most) / 127.0F;

    if (most >= FSDPI_INFINITY_BITS) {
        return fsdpi_f32_from_bits(0x7fc00000U);
    }
    if (scale < FSDPI_SMALLEST_F32) { /* its inverse would overflow */
        return FSDPI_SMALLEST_F32;
    }
    return is_finite(127.0F * scale) ? scale : fsdpi_f32_from_bits(fsdpi_f32_bits(scale) - 1);
}

FSDPI_DEVICE int8_t code_of(float x, float inverse)
{
    return static_cast<int8_t>(
        static_cast<int32_t>(fsdpi_f32_bits(x * inverse + FSDPI_ROUNDER) - fsdpi_f32_bits(FSDPI_ROUNDER)));
}

/* ALIGNED: each block begins where four values, and four codes, can be accessed as one. */
template <bool ALIGNED> struct encoder {
    const float *x;
    size_t       n, block, padded; /* codes in all, with the zeros behind them */
    float       *scales;
    int8_t      *codes;

    FSDPI_DEVICE size_t end_of(size_t item) const
    {
        return n - item * block < block ? n : (item + 1) * block;
    }

    FSDPI_DEVICE uint32_t measure(size_t item, unsigned lane) const
    {
        const size_t end  = end_of(item);
        uint32_t     most = 0;
        size_t       i    = item * block + lane * (ALIGNED ? STEP : 1);

        for (; ALIGNED && i + STEP <= end; i += TEAM * STEP) {
            const packet<float, STEP> next = load<STEP>(x + i);

            FSDPI_UNROLL
            for (int k = 0; k < STEP; k++) {
                const uint32_t one = fsdpi_f32_bits(next.at[k]) & 0x7fffffffU;

                most = one > most ? one : most;
            }
        }
        const size_t stop = ALIGNED && i + STEP < end ? i + STEP : end;
        for (; i < stop; i += ALIGNED ? 1 : TEAM) {
            const uint32_t one = fsdpi_f32_bits(load<1>(x + i).at[0]) & 0x7fffffffU;

            most = one > most ? one : most;
        }
        return most;
    }

    FSDPI_DEVICE void apply(size_t item, unsigned lane, uint32_t most) const
    {
        const float  scale   = scale_of(most);
        const bool   finite  = is_finite(scale);
        const float  inverse = 1.0F / scale;
        const size_t end     = end_of(item);
        size_t       i       = item * block + lane * (ALIGNED ? STEP : 1);

        if (lane == 0) {
            store<1>(scales + item, packet<float, 1>{{scale}});
        }
        for (; ALIGNED && i + STEP <= end; i += TEAM * STEP) {
            const packet<float, STEP> next = load<STEP>(x + i);
            packet<int8_t, STEP>      code;

            FSDPI_UNROLL
            for (int k = 0; k < STEP; k++) {
                code.at[k] = finite ? code_of(next.at[k], inverse) : static_cast<int8_t>(0);
            }
            store<STEP>(codes + i, code);
        }
        const size_t stop = ALIGNED && i + STEP < end ? i + STEP : end;
        for (; i < stop; i += ALIGNED ? 1 : TEAM) {
            const int8_t code = finite ? code_of(load<1>(x + i).at[0], inverse) : static_cast<int8_t>(0);

            store<1>(codes + i, packet<int8_t, 1>{{code}});
        }
        if (end == n && lane < padded - n) {
            store<1>(codes + n + lane, packet<int8_t, 1>{{0}});
        }
    }
};

template <class T, bool ALIGNED> struct decoder {
    const float  *scales;
    const int8_t *codes;
    size_t        n, block;
    T            *x;

    static FSDPI_DEVICE T of(float value)
    {
        return element<T>::narrow(static_cast<typename element<T>::working>(value));
    }

    FSDPI_DEVICE uint32_t measure(size_t, unsigned) const
    {
        return 0;
    }

    FSDPI_DEVICE void apply(size_t item, unsigned lane, uint32_t) const
    {
        const float  scale = load<1>(scales + item).at[0];
        const size_t end   = n - item * block < block ? n : (item + 1) * block;
        size_t       i     = item * block + lane * (ALIGNED ? STEP : 1);

        for (; ALIGNED && i + STEP <= end; i += TEAM * STEP) {
            const packet<int8_t, STEP> code = load<STEP>(codes + i);
            packet<T, STEP>            value;

            FSDPI_UNROLL
            for (int k = 0; k < STEP; k++) {
                value.at[k] = of(scale * static_cast<float>(code.at[k]));
            }
            store<STEP>(x + i, value);
        }
        const size_t stop = ALIGNED && i + STEP < end ? i + STEP : end;
        for (; i < stop; i += ALIGNED ? 1 : TEAM) {
            store<1>(x + i, packet<T, 1>{{of(scale * static_cast<float>(load<1>(codes + i).at[0]))}});
        }
    }
};

inline size_t blocks_of(size_t n, size_t block)
{
    return n / block + (n % block != 0);
}

template <class T> bool in_fours(const T *x, size_t block)
{
    return reinterpret_cast<uintptr_t>(x) % (STEP * sizeof(T)) == 0 && block % STEP == 0;
}

struct decoding {
    const void      *packed;
    size_t           n, block;
    void            *x;
    fsdpi_gpu_stream stream;

    template <class T> int on() const
    {
        const size_t  n_blocks = blocks_of(n, block);
        const float  *scales   = static_cast<const float *>(packed);
        const int8_t *codes    = reinterpret_cast<const int8_t *>(scales + n_blocks);
        T *const      to       = static_cast<T *>(x);

        if (in_fours(to, block)) {
            return launch_teams(decoder<T, true>{scales, codes, n, block, to}, n_blocks, stream);
        }
        return launch_teams(decoder<T, false>{scales, codes, n, block, to}, n_blocks, stream);
    }
};

} // namespace fsdpi

int fsdpi_gpu_int8_pack(const float *x, size_t begin, size_t count, size_t n, size_t block, void *packed,
                        fsdpi_gpu_stream stream)
{
    const size_t n_blocks = fsdpi::blocks_of(count, block);
    const size_t padded   = begin + count == n ? (n + 3) / 4 * 4 - begin : count;
    float       *scales   = static_cast<float *>(packed);
    int8_t      *codes    = reinterpret_cast<int8_t *>(scales + fsdpi::blocks_of(n, block)) + begin;

    scales += begin / block;
    if (fsdpi::in_fours(x, block)) {
        return fsdpi::launch_teams(fsdpi::encoder<true>{x, count, block, padded, scales, codes}, n_blocks, stream);
    }
    return fsdpi::launch_teams(fsdpi::encoder<false>{x, count, block, padded, scales, codes}, n_blocks, stream);
}

int fsdpi_gpu_int8_unpack(const void *packed, size_t n, size_t block, void *x, fsdp_dtype dtype,
                          fsdpi_gpu_stream stream)
{
    return fsdpi::with_float_type(dtype, fsdpi::decoding{packed, n, block, x, stream});
}
