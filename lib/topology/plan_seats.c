/* A matching of ranks and cores, by augmenting paths: whoever has a choice makes room for who has none. */
#include "lib/topology/plan_seats.h"

#include <stdlib.h>

#include "lib/topology/mask.h"

static void list_groups(fsdpi_seats *seats)
{
    const fsdpi_planning *plan = seats->plan;
    fsdp_mask             seen = {{0}};

    for (size_t r = 0; r < plan->n; r++) {
        size_t at = seats->n_groups;

        if (plan->first[r] != (int)r) {
            continue;
        }
        const fsdp_mask both  = fsdpi_mask_both(&seen, &plan->masks[r]);
        const int       count = fsdp_mask_count(&plan->masks[r]);

        fsdpi_mask_include(&seats->shared, &both);
        fsdpi_mask_include(&seen, &plan->masks[r]);
        while (at > 0 && fsdp_mask_count(&plan->masks[seats->groups[at - 1]]) > count) {
            seats->groups[at] = seats->groups[at - 1];
            at--;
        }
        seats->groups[at] = (int)r;
        seats->n_groups++;
    }
}

static bool may_have(const fsdpi_seats *seats, int group, size_t core)
{
    return fsdpi_mask_meets(&seats->plan->node->cores[core].threads, &seats->plan->masks[group]);
}

/* An idle core that as few others as can be may have; -1: none. */
static int find_idle(const fsdpi_seats *seats, int group)
{
    size_t fewest = 0;
    int    best   = -1;

    for (size_t c = 0; c < seats->plan->node->n_cores && (best < 0 || fewest > 1); c++) {
        size_t wanted = 0;

        if (seats->owners[c] >= 0 || !may_have(seats, group, c)) {
            continue;
        }
        for (size_t g = 0; g < seats->n_groups; g++) {
            wanted += may_have(seats, seats->groups[g], c);
        }
        if (best < 0 || wanted < fewest) {
            best   = (int)c;
            fewest = wanted;
        }
    }
    return best;
}

static bool find_seat(fsdpi_seats *seats, int group)
{
    const int idle = find_idle(seats, group);

    if (idle >= 0) {
        seats->owners[idle] = group;
        return true;
    }
    for (size_t c = 0; c < seats->plan->node->n_cores; c++) {
        if (!seats->tried[c] && may_have(seats, group, c) && seats->owners[c] != group) {
            seats->tried[c] = true;
            if (find_seat(seats, seats->owners[c])) {
                seats->owners[c] = group;
                return true;
            }
        }
    }
    return false;
}

static void find_seats(fsdpi_seats *seats)
{
    const size_t n_cores = seats->plan->node->n_cores;

    for (size_t g = 0; g < seats->n_groups; g++) {
        const int group = seats->groups[g];
        bool      found = fsdpi_mask_meets(&seats->plan->masks[group], &seats->shared);

        for (int i = 0; found && i < seats->plan->sharers[group]; i++) {
            for (size_t c = 0; c < n_cores; c++) {
                seats->tried[c] = false;
            }
            found = find_seat(seats, group);
        }
    }
}

bool fsdpi_seats_open(const fsdpi_planning *plan, fsdpi_seats *seats)
{
    const size_t n_cores = plan->node->n_cores;
    int         *ints    = malloc((plan->n + n_cores) * sizeof *ints);

    *seats = (fsdpi_seats){.plan = plan, .groups = ints, .tried = malloc(n_cores + 1)};
    if (ints == NULL || seats->tried == NULL) {
        fsdpi_seats_close(seats);
        return false;
    }
    seats->owners = ints + plan->n;
    for (size_t c = 0; c < n_cores; c++) {
        seats->owners[c] = -1;
    }
    list_groups(seats);
    find_seats(seats);
    return true;
}

void fsdpi_seats_close(fsdpi_seats *seats)
{
    free(seats->groups);
    free(seats->tried);
}

bool fsdpi_seats_left(const fsdpi_seats *seats, int group, const fsdp_mask *taken, fsdp_mask *left)
{
    const fsdp_node *node = seats->plan->node;

    *left = seats->plan->masks[group];
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        left->word[w] &= ~taken->word[w];
    }
    for (size_t c = 0; c < node->n_cores; c++) {
        for (int w = 0; w < FSDP_MASK_WORDS && seats->owners[c] >= 0 && seats->owners[c] != group; w++) {
            left->word[w] &= ~node->cores[c].threads.word[w];
        }
    }
    return fsdpi_count_cores(node, left) >= (size_t)seats->plan->sharers[group];
}
