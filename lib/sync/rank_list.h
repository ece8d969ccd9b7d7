/**
 * @file
 * A few ranks, in order: those that an operation waits for, and those that are missing.
 */
#ifndef FSDPI_RANK_LIST_H
#define FSDPI_RANK_LIST_H

#include <stdbool.h>
#include <stdint.h>

/** How many of them are known by number; of further ones only how many there are. */
enum { FSDPI_RANKS_LISTED = 16 };

typedef struct fsdpi_rank_list {
    int32_t n;
    int32_t more;
    int32_t ranks[FSDPI_RANKS_LISTED];
} fsdpi_rank_list;

static inline bool fsdpi_rank_list_has(const fsdpi_rank_list *list, int rank)
{
    for (int i = 0; i < list->n; i++) {
        if (list->ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

/** Adds a rank, once. */
static inline void fsdpi_rank_list_add(fsdpi_rank_list *list, int rank)
{
    int at = list->n;

    if (fsdpi_rank_list_has(list, rank)) {
        return;
    }
    if (list->n == FSDPI_RANKS_LISTED) {
        list->more++;
        return;
    }
    for (; at > 0 && list->ranks[at - 1] > rank; at--) {
        list->ranks[at] = list->ranks[at - 1];
    }
    list->ranks[at] = rank;
    list->n++;
}

#endif
