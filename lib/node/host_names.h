/**
 * @file
 * The names of the hosts of many nodes in little memory: what all of them begin and end with is kept once, and of each what is
 * between, where that is a number of as many digits on all as a number. Without MPI.
 */
#ifndef FSDPI_HOST_NAMES_H
#define FSDPI_HOST_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FSDPI_HOST_BYTES = 64 }; /* of a name, with its NUL */

/** What names have in common: the traits of several are the bitwise OR of theirs. */
typedef struct fsdpi_host_traits {
    uint8_t  from_left[2][FSDPI_HOST_BYTES];  /* of each column its byte, and the opposite of that */
    uint8_t  from_right[2][FSDPI_HOST_BYTES]; /* the same, counted from the end */
    uint64_t lengths;                         /* a bit for each */
    uint64_t other_than_digits;               /* a bit for each column from the left */
} fsdpi_host_traits;

/** All names. */
typedef struct fsdpi_host_names {
    char           first[FSDPI_HOST_BYTES]; /* one of them: for what all have in common */
    int            head, tail;              /* of its characters that all begin and end with */
    int            digits;                  /* of the number between; 0: it is text */
    int            bytes;                   /* of each node; */
    bool           known;                   /* false: there are no names, or no memory for them */
    unsigned char *table;
} fsdpi_host_names;

/** BYTES of the table of a context of `size` ranks; names that do not fit into it are not kept. */
size_t fsdpi_host_names_bytes(int size);

fsdpi_host_traits fsdpi_host_traits_of(const char *name);

/** How names will be kept. `name`: any of them; `all`: the traits of all; `nodes`: how many have one; `size`: see above. */
void fsdpi_host_names_begin(fsdpi_host_names *names, const char *name, const fsdpi_host_traits *all, int nodes,
                            int size);

/** Where the table is. */
void fsdpi_host_names_move(fsdpi_host_names *names, void *table);

/** Writes a node's name into a table that holds 0 there. Tables of which each has some names are the bitwise OR of these. */
void fsdpi_host_names_put(fsdpi_host_names *names, int node, const char *name);

/** The name of a node's host; "" where it is not known. */
void fsdpi_host_names_get(const fsdpi_host_names *names, int node, char name[FSDPI_HOST_BYTES]);

#endif
