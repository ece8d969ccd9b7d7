/**
 * @file
 * A row of the table of algorithms.
 */
#ifndef FSDPI_ROW_H
#define FSDPI_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "lib/context/collective_id.h"

/** Values of a row's memory and of its nodes. */
enum { FSDPI_SYMMETRIC = 1, FSDPI_USER = 2, FSDPI_ONE = 1, FSDPI_MANY = 2, FSDPI_ANY = 3, FSDPI_PAIR = 4 };

typedef struct fsdpi_row {
    uint64_t up_to;      /* BYTES of the full vector; UINT64_MAX: any */
    uint8_t  collective; /* fsdpi_collective_id */
    uint8_t  memory;     /* symmetric, user, any */
    uint8_t  nodes;      /* one, many, any, or a pair: one of two ranks */
    uint8_t  algorithm;  /* fsdp_algorithm */
} fsdpi_row;

#endif
