#include "lib/base/error.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/core.h"
#include "lib/base/doing.h"
#include "lib/base/log.h"

/* ---- details of the calling thread ------------------------------------------------------------------------------- */

/*
 * What a thread has recorded last, from its first failure to its end. Whoever loads the library in a running program, as
 * interpreters do, has little room for variables of threads: they are three pointers and a flag, of no special model.
 */
typedef struct details {
    char     without_context[FSDPI_ERROR_BYTES];
    char     of_context[FSDPI_ERROR_BYTES];
    uint64_t context; /* its number; 0: none */
} details;

static const details NO_MEMORY = {.without_context = "there was no memory for the detail of this failure"};

static _Thread_local const details *known;     /* NULL: none */
static _Thread_local char          *diverted;  /* where details of contexts go instead, or NULL */
static _Thread_local const char    *call_now;  /* see lib/base/doing.h */
static _Thread_local bool           unprinted; /* what was recorded last; see fsdpi_fail_together() */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t  key; /* releases the details of a thread that ends */
static bool           has_key;

static void release(void *memory)
{
    known = NULL;
    free(memory);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, release) == 0;
}

/* When the library is unloaded. What threads that go on have recorded stays: nothing would release it later. */
__attribute__((destructor)) static void forget_key(void)
{
    if (has_key) {
        release(pthread_getspecific(key));
        (void)pthread_key_delete(key);
        has_key = false;
    }
}

/* NULL where there is no memory for them. */
static details *details_of_thread(void)
{
    (void)pthread_once(&once, make_key);
    if (!has_key) {
        return NULL;
    }
    details *mine = pthread_getspecific(key);
    if (mine == NULL) {
        mine = calloc(1, sizeof *mine);
        if (mine != NULL && pthread_setspecific(key, mine) != 0) {
            free(mine);
            mine = NULL;
        }
    }
    known = mine != NULL ? mine : &NO_MEMORY;
    return mine;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

void fsdpi_record_into(char *place)
{
    diverted = place;
}

static const char *recorded(const fsdpi_core *core)
{
    return known != NULL && known->context == core->number ? known->of_context : core->error;
}

const char *fsdp_last_error(const fsdp_context *ctx)
{
    if (ctx == NULL) {
        return known != NULL ? known->without_context : "";
    }
    return recorded(fsdpi_const_core_of(ctx));
}

const char *fsdpi_error_recorded(fsdp_context *ctx)
{
    if (ctx == NULL) {
        return fsdp_last_error(NULL);
    }
    return diverted != NULL ? diverted : recorded(fsdpi_core_of(ctx));
}

/* For the calling thread, and for those that have not failed in this context. */
static void record_in_context(fsdpi_core *core, const char *text)
{
    details *mine = details_of_thread();

    if (mine != NULL) {
        memcpy(mine->of_context, text, FSDPI_ERROR_BYTES);
        mine->context = core->number;
    }
    fsdpi_lock_take(&core->error_lock);
    memcpy(core->error, text, FSDPI_ERROR_BYTES);
    fsdpi_lock_give(&core->error_lock);
}

static void record(fsdp_context *ctx, const char *text)
{
    if (ctx != NULL && diverted != NULL) {
        memcpy(diverted, text, FSDPI_ERROR_BYTES);
    } else if (ctx != NULL) {
        record_in_context(fsdpi_core_of(ctx), text);
    } else {
        details *mine = details_of_thread();
        if (mine != NULL) {
            memcpy(mine->without_context, text, FSDPI_ERROR_BYTES);
        }
    }
}

void fsdpi_error_hand_on(fsdp_context *from, fsdp_context *to, fsdp_status status)
{
    if (status != FSDP_OK && from != to) {
        (void)fsdpi_record(to, status, "%s", fsdpi_error_recorded(from));
    }
}

/* In a text apart, since the arguments may be what was recorded before. */
fsdp_status fsdpi_fail(fsdp_context *ctx, fsdp_status status, const char *format, ...)
{
    char    text[FSDPI_ERROR_BYTES] = "";
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    record(ctx, text);
    unprinted = false;
    fsdpi_log(ctx, FSDP_LOG_ERROR, "%s (%s)", text, fsdp_status_name(status));
    return status;
}

fsdp_status fsdpi_fail_together(fsdp_context *ctx, fsdp_status status, const char *format, ...)
{
    char    text[FSDPI_ERROR_BYTES] = "";
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    record(ctx, text);
    unprinted = true;
    return status;
}

bool fsdpi_error_take_unprinted(void)
{
    const bool was = unprinted;

    unprinted = false;
    return was;
}

void fsdpi_error_print(fsdp_context *ctx, fsdp_status status)
{
    if (status != FSDP_OK && fsdpi_error_take_unprinted()) {
        fsdpi_log(ctx, FSDP_LOG_ERROR, "%s (%s)", fsdpi_error_recorded(ctx), fsdp_status_name(status));
    }
}

fsdp_status fsdpi_record(fsdp_context *ctx, fsdp_status status, const char *format, ...)
{
    char    text[FSDPI_ERROR_BYTES] = "";
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    record(ctx, text);
    return status;
}

const char *fsdpi_doing(const char *call)
{
    const char *before = call_now;

    call_now = call;
    return before;
}

fsdp_status fsdpi_fail_copy(fsdp_context *ctx)
{
    return fsdpi_fail(ctx, FSDP_ERR_STATE,
                      "this process was made by fork(), and the context is that of process %d; call libfsdp there only",
                      fsdpi_core_of(ctx)->copy_of);
}

/* MPI does not tell whom its collectives wait for. */
static fsdp_status fail_in_time(fsdp_context *ctx)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_TIMEOUT,
                          "not all ranks have come to %s within FSDP_TIMEOUT_S seconds; look for a rank that has died, "
                          "was stopped or is elsewhere",
                          call_now != NULL ? call_now : "this call");
    }
    const fsdpi_core *core = fsdpi_core_of(ctx);
    return fsdpi_fail(
        ctx, FSDP_ERR_TIMEOUT,
        "rank %d waits in %s, to which not all %d ranks have come within FSDP_TIMEOUT_S=%d seconds; look for "
        "a rank that has died, was stopped or is elsewhere",
        core->rank, call_now != NULL ? call_now : "this call", core->size, core->config.timeout_s);
}

/* A function of MPI or a public one by its name, without arguments; one of ours by the call that it was called for. */
static void name_call(const char *source, char *name, size_t size)
{
    if (strncmp(source, "MPI_", 4) == 0 || strncmp(source, "fsdp_", 5) == 0) {
        (void)snprintf(name, size, "%.*s", (int)strcspn(source, "("), source);
    } else {
        (void)snprintf(name, size, "MPI%s%s", call_now != NULL ? " in " : "", call_now != NULL ? call_now : "");
    }
}

fsdp_status fsdpi_fail_mpi(fsdp_context *ctx, int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "", name[64];
    int  length                     = 0;

    (void)MPI_Error_string(code, text, &length);
    const fsdp_status status = code == MPI_ERR_PENDING ? FSDP_ERR_TIMEOUT : FSDP_ERR_MPI;
    if (ctx != NULL) {
        fsdpi_core_of(ctx)->broken = status;
    }
    if (status == FSDP_ERR_TIMEOUT) {
        return fail_in_time(ctx);
    }
    name_call(call, name, sizeof name);
    return fsdpi_fail(ctx, status, "%s failed: %s%s", name, text,
                      ctx != NULL ? "; finalize the context, it cannot be used any more" : "");
}
