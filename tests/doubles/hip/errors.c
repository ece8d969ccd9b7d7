/* Errors, as they are asked for, and mistakes of the program under test. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/hip/double.h"

enum { FAILURES = 16, NAME_BYTES = 48 };

static struct failure {
    char       function[NAME_BYTES];
    int        calls_left; /* 0: none is to fail */
    hipError_t error;
} failures[FAILURES];

static pthread_mutex_t          lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t           once = PTHREAD_ONCE_INIT;
static _Thread_local hipError_t last_error;
static void (*on_mistake)(const char *what);

long long double_setting(const char *name, long long otherwise)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? strtoll(value, NULL, 10) : otherwise;
}

void double_mistake(const char *format, ...)
{
    char    what[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (on_mistake != NULL) {
        on_mistake(what);
        return;
    }
    (void)fprintf(stderr, "double of HIP: %s\n", what);
    abort();
}

void hip_double_on_mistake(void (*told)(const char *what))
{
    on_mistake = told;
}

void hip_double_fail(const char *function, int n, hipError_t error)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < FAILURES; i++) {
        if (failures[i].function[0] == '\0' || strcmp(failures[i].function, function) == 0) {
            (void)snprintf(failures[i].function, NAME_BYTES, "%s", function);
            failures[i].calls_left = n;
            failures[i].error      = error;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

static void read_failures(void)
{
    const char *at = getenv("HIP_DOUBLE_FAIL");
    char        name[NAME_BYTES];
    int         n, error, length;

    while (at != NULL && sscanf(at, "%47[^:]:%d=%d%n", name, &n, &error, &length) == 3) {
        hip_double_fail(name, n, (hipError_t)error);
        at += length;
        at = *at == ',' ? at + 1 : NULL;
    }
}

hipError_t double_error(hipError_t error)
{
    last_error = error != hipSuccess ? error : last_error;
    return error;
}

hipError_t double_enter(const char *function)
{
    hipError_t error = hipSuccess;

    (void)pthread_once(&once, read_failures);
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < FAILURES && failures[i].function[0] != '\0'; i++) {
        if (strcmp(failures[i].function, function) == 0 && failures[i].calls_left > 0 &&
            --failures[i].calls_left == 0) {
            error = failures[i].error;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return double_error(error);
}

hipError_t hipGetLastError(void)
{
    const hipError_t error = last_error;

    last_error = hipSuccess;
    return error;
}

const char *hipGetErrorName(hipError_t error)
{
    switch ((int)error) {
    case hipSuccess:
        return "hipSuccess";
    case hipErrorInvalidValue:
        return "hipErrorInvalidValue";
    case hipErrorOutOfMemory:
        return "hipErrorOutOfMemory";
    case hipErrorNoDevice:
        return "hipErrorNoDevice";
    case hipErrorInvalidDevice:
        return "hipErrorInvalidDevice";
    case hipErrorMapFailed:
        return "hipErrorMapFailed";
    case hipErrorInvalidHandle:
        return "hipErrorInvalidHandle";
    case hipErrorNotReady:
        return "hipErrorNotReady";
    case hipErrorPeerAccessAlreadyEnabled:
        return "hipErrorPeerAccessAlreadyEnabled";
    default:
        return "hipErrorUnknown";
    }
}

const char *hipGetErrorString(hipError_t error)
{
    return hipGetErrorName(error);
}
