/** @file Places for as many micro-batches of one kind as are there at once: each holds what passes between two stages. */
#ifndef FSDPI_PIPELINE_SHELF_H
#define FSDPI_PIPELINE_SHELF_H

#include <stddef.h>

typedef struct fsdpi_shelf {
    unsigned char *memory;
    size_t         bytes; /* of one place */
    size_t         pitch; /* from one place to the next */
    int            n;
    int           *micro; /* that lies there; -1: none */
} fsdpi_shelf;

/** BYTES from one place to the next: whole cache lines. */
static inline size_t fsdpi_shelf_pitch(size_t bytes)
{
    enum { LINE = 64 };

    return (bytes + LINE - 1) / LINE * LINE;
}

/** The place of a micro-batch, or, with -1, a free one; -1: there is none. */
static inline int fsdpi_shelf_find(const fsdpi_shelf *shelf, int micro)
{
    for (int i = 0; i < shelf->n; i++) {
        if (shelf->micro[i] == micro) {
            return i;
        }
    }
    return -1;
}

static inline unsigned char *fsdpi_shelf_memory(const fsdpi_shelf *shelf, int place)
{
    return shelf->bytes > 0 && place >= 0 ? shelf->memory + (size_t)place * shelf->pitch : NULL;
}

/** Memory of a micro-batch that has a place; NULL where it has none, or shelf have no bytes. */
static inline unsigned char *fsdpi_shelf_of(const fsdpi_shelf *shelf, int micro)
{
    return fsdpi_shelf_memory(shelf, fsdpi_shelf_find(shelf, micro));
}

/** Gives it a free place, of which there is one if the row is carried out in order: see need.h. */
static inline unsigned char *fsdpi_shelf_take(fsdpi_shelf *shelf, int micro)
{
    const int place = fsdpi_shelf_find(shelf, -1);

    if (place >= 0) {
        shelf->micro[place] = micro;
    }
    return fsdpi_shelf_memory(shelf, place);
}

static inline void fsdpi_shelf_give(fsdpi_shelf *shelf, int micro)
{
    const int place = fsdpi_shelf_find(shelf, micro);

    if (place >= 0) {
        shelf->micro[place] = -1;
    }
}

#endif
