/**
 * @file
 * Names and who has them, found in a number of steps that grows with the logarithm of how many there are.
 *
 * A binary trie over the bits of a hash of the name. Entries are part of what they name, and take no memory beside it.
 */
#ifndef FSDPI_NAMES_H
#define FSDPI_NAMES_H

#include <stdint.h>

typedef struct fsdpi_name {
    const char        *text;
    uint64_t           hash;
    struct fsdpi_name *child[2]; /* by the first bit of the hash at the root, by the next one below */
} fsdpi_name;

typedef struct fsdpi_names {
    fsdpi_name *root; /* NULL: empty */
} fsdpi_names;

/** Adds a name that is not there yet. `text` outlives the entry, which stays where it is. */
void fsdpi_names_add(fsdpi_names *names, fsdpi_name *entry, const char *text);

/** The entry of a name; NULL. */
fsdpi_name *fsdpi_names_find(const fsdpi_names *names, const char *text);

/** Of the name `first`.`second`. */
fsdpi_name *fsdpi_names_find_in(const fsdpi_names *names, const char *first, const char *second);

#endif
