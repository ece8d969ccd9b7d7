#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "shard/tensor_parallel/arguments.h"

static size_t elements_of(const fsdp_tp_activations *activations)
{
    return activations->rows * activations->width;
}

static bool overlap(const void *a, const void *b, size_t bytes)
{
    return (const char *)a < (const char *)b + bytes && (const char *)b < (const char *)a + bytes;
}

static fsdp_status copy_on_device(fsdp_context *tp, const char *function, const void *in, void *out, size_t bytes)
{
    fsdpi_gpu_device *gpu = tp->gpu.device;

    if (overlap(in, out, bytes)) {
        const fsdp_status status =
            fsdpi_fail_together(tp, FSDP_ERR_ARG,
                                "%s: the input (%p) and the output (%p), of %zu bytes each, overlap; pass the same "
                                "address twice, or memory apart",
                                function, in, out, bytes);

        fsdpi_error_print(tp, status);
        return status;
    }
    return gpu->ops->copy(gpu, out, in, bytes, fsdpi_gpu_caller(&tp->gpu));
}

static fsdp_status copy_rows(fsdp_context *tp, const char *function, const fsdp_tp_activations *activations,
                             const void *in, void *out)
{
    const size_t      bytes = elements_of(activations) * fsdp_dtype_size(activations->dtype);
    const fsdpi_array from = {"input", in, bytes}, to = {"output", out, bytes};
    fsdp_status       status    = fsdpi_buffers_check(tp, function, in, out, bytes);
    bool              on_device = false;

    status = status == FSDP_OK ? fsdpi_place_check(tp, function, &from, &to, &on_device) : status;
    fsdpi_error_print(tp, status);
    if (status != FSDP_OK || bytes == 0 || in == out) {
        return status;
    }
    if (on_device) {
        return copy_on_device(tp, function, in, out, bytes);
    }
    memmove(out, in, bytes);
    return FSDP_OK;
}

static fsdp_status refuse_request(fsdp_context *tp, const char *function)
{
    return fsdpi_fail(tp, FSDP_ERR_ARG, "%s: the place for the request is NULL", function);
}

/* What is wrong on this rank is told to all where they meet; buffers are looked at there. */
static fsdpi_purpose purpose_of(fsdp_context *tp, const char *function, const fsdp_tp_activations *activations)
{
    return (fsdpi_purpose){.name = function, .status = fsdpi_activations_check(tp, function, activations)};
}

/* Elements that this rank has outside; 0 where they are not known to be sound. */
static size_t own_elements(const fsdp_context *tp, const fsdpi_purpose *purpose, const fsdp_tp_activations *activations)
{
    return purpose->status == FSDP_OK ? elements_of(activations) / (size_t)tp->size : 0;
}

static bool exchanges_at_begin(const fsdp_tp_activations *activations)
{
    return activations == NULL || activations->outside != FSDP_TP_ALL_ROWS;
}

static bool keeps_all_rows(const fsdp_tp_activations *activations)
{
    return activations != NULL && activations->outside == FSDP_TP_ALL_ROWS;
}

/* The type to call a collective with, where `activations` may be unsound. */
static fsdp_dtype type_of(const fsdpi_purpose *purpose, const fsdp_tp_activations *activations)
{
    return purpose->status == FSDP_OK ? activations->dtype : FSDP_F32;
}

/* ---- begin ------------------------------------------------------------------------------------------------------- */

/* `request` is NULL for the blocking form. */
static fsdp_status begin(fsdp_context *tp, const fsdp_tp_activations *activations, const void *in, void *out,
                         fsdp_request **request)
{
    static const char function[] = "fsdp_tp_begin";

    if (tp == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_mesh_context", function);
    }
    const fsdpi_purpose purpose = purpose_of(tp, function, activations);
    if (!exchanges_at_begin(activations)) {
        fsdpi_error_print(tp, purpose.status);
        return purpose.status == FSDP_OK ? copy_rows(tp, function, activations, in, out) : purpose.status;
    }
    const size_t     count = own_elements(tp, &purpose, activations);
    const fsdp_dtype dtype = type_of(&purpose, activations);

    return request != NULL ? fsdpi_iallgather(tp, &purpose, in, out, count, dtype, request)
                           : fsdpi_allgather(tp, &purpose, in, out, count, dtype);
}

fsdp_status fsdp_tp_begin(fsdp_context *tp, const fsdp_tp_activations *activations, const void *in, void *out)
{
    return begin(tp, activations, in, out, NULL);
}

fsdp_status fsdp_tp_ibegin(fsdp_context *tp, const fsdp_tp_activations *activations, const void *in, void *out,
                           fsdp_request **request)
{
    if (request == NULL) {
        return refuse_request(tp, "fsdp_tp_ibegin");
    }
    *request = NULL;
    return begin(tp, activations, in, out, request);
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

static fsdp_status end(fsdp_context *tp, const fsdp_tp_activations *activations, const void *partial, void *out,
                       fsdp_request **request)
{
    static const char function[] = "fsdp_tp_end";

    if (tp == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_mesh_context", function);
    }
    const fsdpi_purpose purpose = purpose_of(tp, function, activations);
    const size_t        own     = own_elements(tp, &purpose, activations);
    const fsdp_dtype    dtype   = type_of(&purpose, activations);

    if (keeps_all_rows(activations)) {
        const size_t all = purpose.status == FSDP_OK ? elements_of(activations) : 0;

        return request != NULL ? fsdpi_iallreduce(tp, &purpose, partial, out, all, dtype, FSDP_SUM, request)
                               : fsdpi_allreduce(tp, &purpose, partial, out, all, dtype, FSDP_SUM);
    }
    return request != NULL ? fsdpi_ireduce_scatter(tp, &purpose, partial, out, own, dtype, FSDP_SUM, request)
                           : fsdpi_reduce_scatter(tp, &purpose, partial, out, own, dtype, FSDP_SUM);
}

fsdp_status fsdp_tp_end(fsdp_context *tp, const fsdp_tp_activations *activations, const void *partial, void *out)
{
    return end(tp, activations, partial, out, NULL);
}

fsdp_status fsdp_tp_iend(fsdp_context *tp, const fsdp_tp_activations *activations, const void *partial, void *out,
                         fsdp_request **request)
{
    if (request == NULL) {
        return refuse_request(tp, "fsdp_tp_iend");
    }
    *request = NULL;
    return end(tp, activations, partial, out, request);
}
