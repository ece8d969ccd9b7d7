#include "lib/mesh/lay.h"

void fsdpi_lay_fill(fsdpi_lay *lay)
{
    const int count = lay->nodes->count;

    lay->ranks     = lay->groups + count + 1;
    lay->groups[0] = 0;
    lay->ranks[0]  = 0;
    for (int m = 0; m < count; m++) {
        const int size = fsdpi_node_size(lay->nodes, m);

        lay->groups[m + 1] = lay->groups[m] + size / lay->group;
        lay->ranks[m + 1]  = lay->ranks[m] + size;
    }
}

/* How many ranks of the nodes before this one are in no whole group. */
static int left_over(const fsdpi_lay *lay, int node)
{
    return lay->ranks[node] - lay->groups[node] * lay->group;
}

/* The place of the first rank that is in no whole group. */
static int rest(const fsdpi_lay *lay)
{
    return lay->groups[lay->nodes->count] * lay->group;
}

int fsdpi_lay_place(const fsdpi_lay *lay, int rank)
{
    const fsdpi_seated seat  = fsdpi_roster_seated(&lay->nodes->roster, rank);
    const int          whole = (lay->groups[seat.node + 1] - lay->groups[seat.node]) * lay->group;

    return seat.position < whole ? lay->groups[seat.node] * lay->group + seat.position
                                 : rest(lay) + left_over(lay, seat.node) + seat.position - whole;
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
