/**
 * @file
 * Quantised gathers: packed slices, and how they become a view.
 */
#ifndef FSDPI_QUANTIZED_H
#define FSDPI_QUANTIZED_H

#include <stddef.h>

#include "collectives/collectives.h"
#include "shard/state/model.h"

/** Where the packed slices of all ranks are: behind the view. */
static inline unsigned char *fsdpi_packed_slices(const fsdpi_flat *flat, const fsdpi_view *view)
{
    return view->memory + flat->layout.padded * fsdp_dtype_size(flat->dtype);
}

/**
 * Gathers packed slices behind the view and unpacks them into it. Sets view->gathering, and on the host view->unpacking; on
 * a GPU they are unpacked by fsdpi_dequantize(), in the model's stream, when the gather has been waited for.
 */
fsdp_status fsdpi_gather_quantized(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view);

/* On the host (shard/storage/quantized_host.c). */

/** Unpacks them, behind the gather: view->unpacking. */
fsdp_status fsdpi_unpack_on_host(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view);

/** Unpacks what every rank holds whole into its view. */
void fsdpi_read_back_on_host(fsdpi_flat *flat);

/* On a GPU (shard/storage/quantized_device.c). */

/** Unpacks what every rank holds whole into its view. */
void fsdpi_read_back_on_device(fsdpi_flat *flat);

/** Packs `count` values of what this rank holds, from number `begin` on, a multiple of FSDPI_INT8_BLOCK, which are at `x`. */
void fsdpi_quantize_run(fsdpi_flat *flat, const float *x, size_t begin, size_t count);

/** Leaves that to fsdpi_dequantize(), when the gather has been waited for. */
fsdp_status fsdpi_unpack_on_device(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view);
void        fsdpi_dequantize(fsdpi_view *view);

#endif
