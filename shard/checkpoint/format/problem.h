/**
 * @file
 * What is wrong with a file, as data: functions that read and write files know no context, may run on any thread, and leave
 * it to their caller whether, where and on how many ranks it is reported.
 *
 *     status = fsdpi_tensor_file_open(path, &file, &problem);
 *     if (status != FSDP_OK) {
 *         (void)fsdpi_record(ctx, status, "fsdp_load: %s", problem.text);
 *     }
 */
#ifndef FSDPI_PROBLEM_H
#define FSDPI_PROBLEM_H

#include <stddef.h>

#include "fsdp/status.h"

/** BYTES of the longest text, with its NUL: less than FSDPI_ERROR_BYTES, so that a caller can say more. */
#define FSDPI_PROBLEM_BYTES 896

typedef struct fsdpi_problem {
    fsdp_status status;
    char        text[FSDPI_PROBLEM_BYTES]; /* names the file, the byte or tensor, and what is wrong; printable */
} fsdpi_problem;

/**
 * Sets a problem. What cannot be printed, as control characters of a name that a file gave, becomes '?'.
 * @return `status`, so that it can be returned at once
 */
fsdp_status fsdpi_problem_set(fsdpi_problem *problem, fsdp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** FSDP_ERR_IO with `path`, what was done to it ("open", "read") and the text of errno; FSDP_ERR_MEMORY for ENOMEM. */
fsdp_status fsdpi_problem_errno(fsdpi_problem *problem, const char *path, const char *doing);

/** FSDP_ERR_MEMORY with `path` and the BYTES that there was no memory for. */
fsdp_status fsdpi_problem_memory(fsdpi_problem *problem, const char *path, size_t bytes);

#endif
