/**
 * @file
 * What every function returns, and where to find the detail of a failure.
 */
#ifndef FSDP_STATUS_H
#define FSDP_STATUS_H

#include "fsdp/export.h"

/** The one list of codes: name, value, text. Values are part of the ABI and never change. */
#define FSDP_STATUS_LIST(X)                                                                                            \
    X(FSDP_OK, 0, "success")                                                                                           \
    X(FSDP_ERR_ARG, 1, "invalid argument")                                                                             \
    X(FSDP_ERR_STATE, 2, "call not allowed in the present state")                                                      \
    X(FSDP_ERR_MISMATCH, 3, "ranks disagree about an operation")                                                       \
    X(FSDP_ERR_MEMORY, 4, "out of memory")                                                                             \
    X(FSDP_ERR_MPI, 5, "an MPI call failed")                                                                           \
    X(FSDP_ERR_TIMEOUT, 6, "an operation did not end in time")                                                         \
    X(FSDP_ERR_UNSUPPORTED, 7, "not supported by this build or in this combination")                                   \
    X(FSDP_ERR_LEAK, 8, "objects were still open at finalize and have been released")                                  \
    X(FSDP_ERR_IO, 9, "reading or writing a file failed")                                                              \
    X(FSDP_ERR_FORMAT, 10, "a file is damaged, or not what it should be")                                              \
    X(FSDP_ERR_DEVICE, 11, "a call of the GPU runtime failed")

#define FSDP_STATUS_ENUMERATOR(name, value, text) name = (value),
typedef enum fsdp_status { FSDP_STATUS_LIST(FSDP_STATUS_ENUMERATOR) } fsdp_status;
#undef FSDP_STATUS_ENUMERATOR

typedef struct fsdp_context fsdp_context;

FSDP_EXTERN_C_BEGIN

/** The name of a code, as "FSDP_ERR_ARG"; "FSDP_UNKNOWN" for a value that is no code. Local; the text is static. */
FSDP_API const char *fsdp_status_name(fsdp_status status);

/** One line that says what a code means in general. Local; the text is static. */
FSDP_API const char *fsdp_status_text(fsdp_status status);

/**
 * The detail of the last failure: what was found, where, which value, and what to do about it. Local.
 *
 * @param[in] ctx  an open context; or NULL for the last failure, in the calling thread, of a function that has no
 *                 context, such as fsdp_init(), fsdp_topology_open() or fsdp_dtype_parse()
 * @return "" if nothing has failed. The text belongs to the library. In a thread in which a call on the context has failed
 *         it is that call's, unless the thread has failed in another context since; it is valid until the thread's next
 *         failing call. In others it is that of the last failing call of any thread, and valid until the next one.
 */
FSDP_API const char *fsdp_last_error(const fsdp_context *ctx);

FSDP_EXTERN_C_END

#endif
