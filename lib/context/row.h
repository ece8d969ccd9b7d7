/**
 * @file
 * A row of the table of algorithms.
 */
#ifndef FSDPI_ROW_H
#define FSDPI_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "lib/context/collective_id.h"

/** Where the input of a call is read from: caches, whatever memory it is; else the library's memory, or any other. */
typedef enum fsdpi_origin { FSDPI_FROM_SYMMETRIC = 1, FSDPI_FROM_USER = 2, FSDPI_FROM_CACHES = 4 } fsdpi_origin;

/** Values of a row's memory, of these. Rows for symmetric memory serve what caches hold, unless a row before them does. */
enum {
    FSDPI_SYMMETRIC = FSDPI_FROM_SYMMETRIC | FSDPI_FROM_CACHES,
    FSDPI_USER      = FSDPI_FROM_USER,
    FSDPI_CACHED    = FSDPI_FROM_CACHES,
    FSDPI_ANY       = FSDPI_SYMMETRIC | FSDPI_USER
};

/** And of its nodes, where FSDPI_ANY is all of them. */
enum { FSDPI_ONE = 1, FSDPI_MANY = 2, FSDPI_PAIR = 4 };

typedef struct fsdpi_row {
    uint64_t up_to;      /* BYTES of the full vector; UINT64_MAX: any */
    uint8_t  collective; /* fsdpi_collective_id */
    uint8_t  memory;     /* symmetric, user, cached, any */
    uint8_t  nodes;      /* one, many, any, or a pair: one of two ranks */
    uint8_t  algorithm;  /* fsdp_algorithm */
} fsdpi_row;

#endif
