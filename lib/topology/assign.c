#include <stdlib.h>

#include "lib/topology/plan.h"

static const int64_t NEVER = INT64_MAX / 4;

typedef struct assignment {
    const int64_t *costs;
    size_t         n_gpus;
    int           *assigned;
    int64_t       *move;  /* n_gpus x n_gpus: what moving a rank from one GPU to another costs, at least */
    int           *mover; /* and which rank that is */
    int64_t       *reach; /* what it costs to bring the new rank in with this GPU as the one with one more */
    int           *from;  /* the GPU whose rank moves here; -1: the new rank comes here itself */
    int           *load;
} assignment;

static void find_moves(assignment *a, size_t n_assigned)
{
    for (size_t i = 0; i < a->n_gpus * a->n_gpus; i++) {
        a->move[i]  = NEVER;
        a->mover[i] = -1;
    }
    for (size_t r = 0; r < n_assigned; r++) {
        const int64_t *costs = a->costs + r * a->n_gpus;
        const size_t   g     = (size_t)a->assigned[r];

        for (size_t h = 0; a->assigned[r] >= 0 && h < a->n_gpus; h++) {
            if (h != g && costs[h] >= 0 && costs[h] - costs[g] < a->move[g * a->n_gpus + h]) {
                a->move[g * a->n_gpus + h]  = costs[h] - costs[g];
                a->mover[g * a->n_gpus + h] = (int)r;
            }
        }
    }
}

/* Bellman and Ford's shortest paths over the GPUs; some moves gain. */
static void find_paths(assignment *a, const int64_t *costs)
{
    bool changed = true;

    for (size_t g = 0; g < a->n_gpus; g++) {
        a->reach[g] = costs[g] >= 0 ? costs[g] : NEVER;
        a->from[g]  = -1;
    }
    for (size_t round = 0; changed && round < a->n_gpus; round++) {
        changed = false;
        for (size_t g = 0; g < a->n_gpus; g++) {
            for (size_t h = 0; h < a->n_gpus && a->reach[g] < NEVER; h++) {
                const int64_t move = a->move[g * a->n_gpus + h];

                if (move < NEVER && a->reach[g] + move < a->reach[h]) {
                    a->reach[h] = a->reach[g] + move;
                    a->from[h]  = (int)g;
                    changed     = true;
                }
            }
        }
    }
}

/* The GPU that is to have one rank more: the fewer it has, the better, whatever else that costs. */
static int best_end(const assignment *a)
{
    int end = -1;

    for (size_t g = 0; g < a->n_gpus; g++) {
        if (a->reach[g] < NEVER &&
            (end < 0 || a->load[g] < a->load[end] || (a->load[g] == a->load[end] && a->reach[g] < a->reach[end]))) {
            end = (int)g;
        }
    }
    return end;
}

static void bring_in(assignment *a, size_t rank)
{
    int end = best_end(a);

    if (end < 0) {
        return;
    }
    a->load[end]++;
    while (a->from[end] >= 0) {
        const size_t before = (size_t)a->from[end];

        a->assigned[a->mover[before * a->n_gpus + (size_t)end]] = end;
        end                                                     = (int)before;
    }
    a->assigned[rank] = end;
}

bool fsdpi_assign(const int64_t *costs, size_t n, size_t n_gpus, int *assigned)
{
    const size_t squared = n_gpus * n_gpus;
    assignment   a       = {
                .costs    = costs,
                .n_gpus   = n_gpus,
                .assigned = assigned,
                .move     = malloc((squared + n_gpus + 1) * sizeof *a.move),
                .mover    = calloc(squared + 2 * n_gpus + 1, sizeof *a.mover),
    };
    const bool ok = a.move != NULL && a.mover != NULL;

    if (ok) {
        a.reach = a.move + squared;
        a.from  = a.mover + squared;
        a.load  = a.from + n_gpus;
        for (size_t r = 0; r < n; r++) {
            assigned[r] = -1;
            find_moves(&a, r);
            find_paths(&a, costs + r * n_gpus);
            bring_in(&a, r);
        }
    }
    free(a.move);
    free(a.mover);
    return ok;
}
