/**
 * @file
 * Opening and closing a context: fsdp_init(), fsdp_finalize().
 */
#ifndef FSDPI_INIT_H
#define FSDPI_INIT_H

#include <stddef.h>

/** BYTES of bookkeeping that a context of `size` ranks holds from the beginning, with FSDP_RECORD=recorded. For budgets. */
size_t fsdpi_context_bookkeeping(int size, int recorded);

#endif
