/**
 * @file
 * The kernels in NEON, which every 64-bit Arm processor has.
 */
#include "kernels/host/simd_neon.h"

#include "kernels/host/simd_accumulate.h"
#include "kernels/host/simd_cast.h"
#include "kernels/host/simd_clip.h"
#include "kernels/host/simd_optimizers.h"
#include "kernels/host/simd_product.h"
#include "kernels/host/simd_reduce.h"
#include "kernels/host/simd_scale.h"
#include "kernels/host/simd_squares.h"
#include "kernels/host/simd_stream.h"
#include "kernels/host/tables.h"

const fsdpi_kernels fsdpi_kernels_neon = {
    .name             = "neon",
    .reduce           = reduce,
    .reduce_into      = reduce_into,
    .copy             = copy,
    .stream           = stream,
    .cast             = cast,
    .scale            = scale,
    .accumulate       = accumulate,
    .sum_squares      = sum_squares,
    .absolute_maximum = absolute_maximum,
    .clamp            = clamp,
    .adam             = adam,
    .adamw            = adamw,
    .lion             = lion,
    .sgd              = sgd,
    .multiply         = multiply,
};
