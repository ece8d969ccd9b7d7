#include "example_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int example_speaks(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

fsdp_status example_fail(const char *format, ...)
{
    char    message[2 * EXAMPLE_MESSAGE_BYTES];
    va_list arguments;

    if (!example_speaks()) {
        return FSDP_ERR_ARG;
    }
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
    return FSDP_ERR_ARG;
}

fsdp_status example_agree(fsdp_context *ctx, const char *message)
{
    const fsdp_status status = fsdp_agree(ctx, message[0] ? FSDP_ERR_ARG : FSDP_OK, message);

    if (status != FSDP_OK && example_speaks()) {
        (void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, fsdp_last_error(ctx));
    }
    return status;
}

int example_output_is_written(void)
{
    const int flushed = fflush(stdout) == 0;

    if (flushed && !ferror(stdout)) {
        return 1;
    }
    (void)fprintf(stderr, "%s: standard output could not be written: %s; make room\n", program_invocation_short_name,
                  flushed ? "an earlier write failed" : strerror(errno));
    return 0;
}
