#include "fsdp/status.h"

#include <mpi.h>
#include <stdio.h>

#include "fsdp/version.h"
#include "lib/context.h"
#include "lib/error.h"
#include "lib/log.h"

#define TEXT_OF_NUMBER_(number) #number
#define TEXT_OF_NUMBER(number)  TEXT_OF_NUMBER_(number)

/* The detail of failures that concern no context; everything else lives in the context. */
static _Thread_local char error_without_context[FSDPI_ERROR_BYTES];

const char *fsdp_version(void)
{
    return TEXT_OF_NUMBER(FSDP_VERSION_MAJOR) "." TEXT_OF_NUMBER(FSDP_VERSION_MINOR) "." TEXT_OF_NUMBER(
        FSDP_VERSION_PATCH);
}

const char *fsdp_status_name(fsdp_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return #name;
        FSDP_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "FSDP_UNKNOWN";
}

const char *fsdp_status_text(fsdp_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return text;
        FSDP_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "not a status of this library";
}

const char *fsdp_last_error(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->error : error_without_context;
}

static char *error_buffer(fsdp_context *ctx)
{
    return ctx != NULL ? ctx->error : error_without_context;
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
    if (ctx != NULL) {
        ctx->broken = FSDP_ERR_MPI;
    }
    return fsdpi_fail(ctx, FSDP_ERR_MPI, "%s failed: %s; finalize the context, it cannot be used any more", call, text);
}
