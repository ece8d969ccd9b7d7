/**
 * @file
 * How a function of Fortran is entered: all arguments are addresses, and in mpi_f08 that of the error code may be absent.
 */
#ifndef FSDPI_PRELOAD_FORTRAN_H
#define FSDPI_PRELOAD_FORTRAN_H

#include <stddef.h>
#include <string.h>

#include "tools/preload/entry/load.h"

#define EXPORT __attribute__((visibility("default")))

#define FIND(next, name)                                                                                               \
    if ((next) == NULL) {                                                                                              \
        void *const found = fsdpi_next(name);                                                                          \
        memcpy(&(next), &found, sizeof found);                                                                         \
    }

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters and arguments come in theirs */
#define TAKEN(function, name, take, parameters, arguments)                                                             \
    EXPORT void function parameters;                                                                                   \
    EXPORT void function parameters                                                                                    \
    {                                                                                                                  \
        static void(*next) parameters;                                                                                 \
                                                                                                                       \
        if (!take arguments) {                                                                                         \
            FIND(next, name)                                                                                           \
            next arguments;                                                                                            \
        }                                                                                                              \
    }

#define COUNTED(function, name, which, addresses)                                                                      \
    EXPORT void function(addresses(void *));                                                                           \
    EXPORT void function(addresses(void *))                                                                            \
    {                                                                                                                  \
        static void (*next)(addresses(void *));                                                                        \
                                                                                                                       \
        if (fsdpi_engine != NULL) {                                                                                    \
            fsdpi_engine->passed(which);                                                                               \
        }                                                                                                              \
        FIND(next, name)                                                                                               \
        next(addresses());                                                                                             \
    }

/* What MPI says is handed on; MPI runs unless the program's own error handler has let it go on without. */
#define BEGINS(function, name, addresses)                                                                              \
    EXPORT void function(addresses(void *));                                                                           \
    EXPORT void function(addresses(void *))                                                                            \
    {                                                                                                                  \
        static void (*next)(addresses(void *));                                                                        \
                                                                                                                       \
        FIND(next, name)                                                                                               \
        next(addresses());                                                                                             \
        fsdpi_engine_load();                                                                                           \
    }

#define ENDS(function, name, addresses)                                                                                \
    EXPORT void function(addresses(void *));                                                                           \
    EXPORT void function(addresses(void *))                                                                            \
    {                                                                                                                  \
        static void (*next)(addresses(void *));                                                                        \
                                                                                                                       \
        fsdpi_engine_unload();                                                                                         \
        FIND(next, name)                                                                                               \
        next(addresses());                                                                                             \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* So many arguments, each behind its type, or behind nothing. */
#define ADDRESSES_1(t)  t a
#define ADDRESSES_2(t)  ADDRESSES_1(t), t b
#define ADDRESSES_3(t)  ADDRESSES_2(t), t c
#define ADDRESSES_4(t)  ADDRESSES_3(t), t d
#define ADDRESSES_5(t)  ADDRESSES_4(t), t e
#define ADDRESSES_6(t)  ADDRESSES_5(t), t f
#define ADDRESSES_7(t)  ADDRESSES_6(t), t g
#define ADDRESSES_8(t)  ADDRESSES_7(t), t h
#define ADDRESSES_9(t)  ADDRESSES_8(t), t i
#define ADDRESSES_10(t) ADDRESSES_9(t), t j
#define ADDRESSES_11(t) ADDRESSES_10(t), t k
#define ADDRESSES_12(t) ADDRESSES_11(t), t l

/* Whether the engine has carried the call out. */
static inline bool fsdpi_give(fsdpi_call *call, int *error)
{
    if (fsdpi_engine == NULL || fsdpi_engine->never[call->collective]) {
        return false;
    }
    const int code = fsdpi_engine->call(call);
    if (error != NULL) {
        *error = code;
    }
    return true;
}

static inline bool fsdpi_take_barrier(const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_BARRIER, .fortran = true, .comm = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

#endif
