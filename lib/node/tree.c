#include "lib/node/tree.h"

#include "lib/node/nodes.h"

/* From the caches up to the node: of what a class of ranks is, at each level, as many as have it in common. */
typedef enum level { CACHE, NUMA, NODE } level;

bool fsdpi_tree_is_needed(int size, int group)
{
    return group != 1 && size > (group == 0 ? FSDPI_FEW_ON_NODE : group);
}

static bool is_known(const fsdpi_place *place, level l)
{
    return l == NODE || (l == NUMA ? place->numa >= 0 : place->cache >= 0);
}

static bool is_same(const fsdpi_place *a, const fsdpi_place *b, level l)
{
    return l == NODE || (a->numa == b->numa && (l == NUMA || a->cache == b->cache));
}

/* Ranks of a group, where a class has n: all of them if these are few, else so that there are about as many groups. */
static int width(int n, int group)
{
    int root = 1;

    if (group > 0 || n <= FSDPI_FEW_ON_NODE) {
        return group > 0 ? group : n;
    }
    while (root * root < n && root < FSDPI_FEW_ON_NODE) {
        root++;
    }
    return root;
}

/* Has the members of a class hear each other until one of them has heard of all, the first. */
static void join_class(uint16_t *members, int n, int group, uint16_t *above)
{
    while (n > 1) {
        const int groups = (n + width(n, group) - 1) / width(n, group);

        for (int g = 0; g < groups; g++) {
            const int begin = group > 0 ? g * group : (int)((long)g * n / groups);
            const int end   = group > 0 ? begin + group : (int)((long)(g + 1) * n / groups);

            for (int i = begin + 1; i < end && i < n; i++) {
                above[members[i]] = members[begin];
            }
            members[g] = members[begin];
        }
        n = groups;
    }
}

/* Takes those of the class of the first head out of `heads`; its first one stays. Returns how many it has. */
static int take_class(const fsdpi_place *places, level l, const uint16_t *heads, int n, bool *taken, int first,
                      uint16_t *members)
{
    int size = 0;

    for (int i = first; i < n; i++) {
        if (!taken[i] && is_same(&places[heads[i]], &places[heads[first]], l)) {
            taken[i]        = true;
            members[size++] = heads[i];
        }
    }
    return size;
}

/* One level: of each class, one head is left, the lowest. Whose class is not known stays for the level above. */
static int join_level(const fsdpi_place *places, level l, uint16_t *heads, int n, int group, uint16_t *above)
{
    bool     taken[FSDPI_MOST_ON_NODE] = {false};
    uint16_t members[FSDPI_MOST_ON_NODE];
    int      left = 0;

    for (int i = 0; i < n; i++) {
        const uint16_t head  = heads[i];
        const bool     known = is_known(&places[head], l);

        if (known && !taken[i]) {
            join_class(members, take_class(places, l, heads, n, taken, i, members), group, above);
            heads[left++] = head;
        } else if (!known) {
            heads[left++] = head;
        }
    }
    return left;
}

void fsdpi_tree_grow(const fsdpi_place *places, int size, int group, uint16_t *above)
{
    uint16_t heads[FSDPI_MOST_ON_NODE];
    int      n = size;

    for (int p = 0; p < size; p++) {
        above[p] = 0;
        heads[p] = (uint16_t)p;
    }
    if (group > 0) {
        join_class(heads, n, group, above);
        return;
    }
    for (level l = CACHE; l <= NODE; l++) {
        n = join_level(places, l, heads, n, group, above);
    }
}

static bool is_leaf(const uint16_t *above, int size, int position)
{
    for (int p = 1; p < size; p++) {
        if (above[p] == position) {
            return false;
        }
    }
    return true;
}

void fsdpi_tree_cut(const uint16_t *above, int size, int position, fsdpi_branch *branch)
{
    branch->above = position > 0 ? above[position] : -1;
    branch->n     = 0;
    for (int leaves = 1; leaves >= 0; leaves--) {
        for (int p = 1; p < size; p++) {
            if (above[p] == position && is_leaf(above, size, p) == (leaves != 0)) {
                branch->below[branch->n++] = (uint16_t)p;
            }
        }
        branch->n_leaf = leaves != 0 ? branch->n : branch->n_leaf;
    }
}
