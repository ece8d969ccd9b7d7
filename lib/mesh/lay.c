#include "lib/mesh/lay.h"

void fsdpi_lay_fill(fsdpi_lay *lay)
{
    int whole = 0;

    for (int m = 0; m < lay->nodes->count; m++) {
        lay->groups[m] = whole;
        whole += fsdpi_node_size(lay->nodes, m) / lay->group;
    }
    lay->groups[lay->nodes->count] = whole;
}

/* How many ranks of the nodes before this one are in no whole group. */
static int left_over(const fsdpi_lay *lay, int node)
{
    return lay->nodes->first[node] - lay->groups[node] * lay->group;
}

/* The place of the first rank that is in no whole group. */
static int rest(const fsdpi_lay *lay)
{
    return lay->groups[lay->nodes->count] * lay->group;
}

int fsdpi_lay_place(const fsdpi_lay *lay, int rank)
{
    const int node     = lay->nodes->node_of[rank];
    const int position = lay->nodes->position_of[rank];
    const int whole    = (lay->groups[node + 1] - lay->groups[node]) * lay->group;

    return position < whole ? lay->groups[node] * lay->group + position
                            : rest(lay) + left_over(lay, node) + position - whole;
}

/* The last node before which there are no more ranks than `n`, of whole groups or of the others. */
static int find_node(const fsdpi_lay *lay, int n, bool whole)
{
    int low = 0, high = lay->nodes->count - 1;

    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        const int before = whole ? lay->groups[middle] * lay->group : left_over(lay, middle);

        if (before <= n) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

int fsdpi_lay_rank(const fsdpi_lay *lay, int place)
{
    const bool whole = place < rest(lay);
    const int  n     = whole ? place : place - rest(lay);
    const int  node  = find_node(lay, n, whole);

    if (whole) {
        return fsdpi_rank_at(lay->nodes, node, n - lay->groups[node] * lay->group);
    }
    const int in_groups = (lay->groups[node + 1] - lay->groups[node]) * lay->group;

    return fsdpi_rank_at(lay->nodes, node, in_groups + n - left_over(lay, node));
}
