#include "lib/base/error.h"

#include <mpi.h>
#include <stdio.h>

#include "lib/base/core.h"
#include "lib/base/log.h"

/* The detail of failures that concern no context; everything else lives in the context. */
static _Thread_local char error_without_context[FSDPI_ERROR_BYTES];

const char *fsdp_last_error(const fsdp_context *ctx)
{
    return ctx != NULL ? fsdpi_const_core_of(ctx)->error : error_without_context;
}

/* Where details of contexts go instead of into the context. */
static _Thread_local char *diverted __attribute__((tls_model("initial-exec"))); /* looked up for every operation */

void fsdpi_record_into(char *place)
{
    diverted = place;
}

static char *error_buffer(fsdp_context *ctx)
{
    if (ctx == NULL) {
        return error_without_context;
    }
    return diverted != NULL ? diverted : fsdpi_core_of(ctx)->error;
}

const char *fsdpi_error_recorded(fsdp_context *ctx)
{
    return error_buffer(ctx);
}

void fsdpi_error_hand_on(fsdp_context *from, fsdp_context *to, fsdp_status status)
{
    if (status != FSDP_OK && from != to) {
        (void)fsdpi_record(to, status, "%s", fsdpi_error_recorded(from));
    }
}

fsdp_status fsdpi_fail(fsdp_context *ctx, fsdp_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error_buffer(ctx), FSDPI_ERROR_BYTES, format, arguments);
    va_end(arguments);
    fsdpi_log(ctx, FSDP_LOG_ERROR, "%s (%s)", error_buffer(ctx), fsdp_status_name(status));
    return status;
}

fsdp_status fsdpi_record(fsdp_context *ctx, fsdp_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error_buffer(ctx), FSDPI_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return status;
}

fsdp_status fsdpi_fail_mpi(fsdp_context *ctx, int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int  length                     = 0;

    (void)MPI_Error_string(code, text, &length);
    const fsdp_status status = code == MPI_ERR_PENDING ? FSDP_ERR_TIMEOUT : FSDP_ERR_MPI;
    if (ctx != NULL) {
        fsdpi_core_of(ctx)->broken = status;
    }
    if (status == FSDP_ERR_TIMEOUT) {
        return fsdpi_fail(ctx, status,
                          "not all ranks have come within FSDP_TIMEOUT_S seconds, to %s; look for the rank that has "
                          "stopped or is elsewhere",
                          call);
    }
    return fsdpi_fail(ctx, status, "%s failed: %s; finalize the context, it cannot be used any more", call, text);
}
