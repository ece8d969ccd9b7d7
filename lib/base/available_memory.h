/**
 * @file
 * How much memory of this machine is left for this process and its neighbours.
 */
#ifndef FSDPI_AVAILABLE_MEMORY_H
#define FSDPI_AVAILABLE_MEMORY_H

#include <stddef.h>

/**
 * BYTES that can still be taken without swapping: what Linux calls available, or what is left of the limit of a control
 * group (version 1 or 2) that this process is in, or of one above that, where that is less. Files kept in memory that are
 * not in use count as left, as they do in what Linux calls available.
 *
 * @param[in] root  in front of /proc and /sys: "", or where a test has made them up
 * @return SIZE_MAX where the system does not say
 */
size_t fsdpi_available_memory(const char *root);

#endif
