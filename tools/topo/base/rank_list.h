/**
 * @file
 * Ranks as a list, "ranks 0-3,7".
 */
#ifndef TOPO_RANK_LIST_H
#define TOPO_RANK_LIST_H

#include <stddef.h>

#define TOPO_RANK_LIST_BYTES 160

/** Starts as all zero. */
typedef struct topo_rank_list {
    size_t n;
    int    first, last; /* of the run that is not in `text` yet */
    char   text[TOPO_RANK_LIST_BYTES];
} topo_rank_list;

/** Adds a rank; in ascending order. */
void topo_rank_list_add(topo_rank_list *list, int rank);

/** Writes "rank 3", "ranks 14-27,30", cut with "..." where `size` BYTES are too few; "no rank". */
void topo_rank_list_text(const topo_rank_list *list, char *text, size_t size);

#endif
