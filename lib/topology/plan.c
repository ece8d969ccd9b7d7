/* The planner: a pure function of the node and of what each rank may use. */
#include "lib/topology/plan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/topology/mask.h"
#include "lib/topology/node.h"

enum { MOST_RANKS = 4096 };

static void close_planning(fsdpi_planning *plan)
{
    free(plan->masks);
    free(plan->sharers);
    free(plan->may_use);
    free(plan->position);
}

/* Which ranks have the same mask. */
static void find_sharers(fsdpi_planning *plan)
{
    for (size_t r = 0; r < plan->n; r++) {
        plan->first[r]   = (int)r;
        plan->sharers[r] = 0;
        for (size_t q = 0; q < r && plan->first[r] == (int)r; q++) {
            plan->first[r] = fsdpi_mask_equal(&plan->masks[q], &plan->masks[r]) ? plan->first[q] : (int)r;
        }
        plan->sharers[plan->first[r]]++;
    }
    for (size_t r = 0; r < plan->n; r++) {
        plan->sharers[r] = plan->sharers[plan->first[r]];
    }
}

static void find_usable(fsdpi_planning *plan)
{
    const fsdp_node *node = plan->node;

    for (size_t r = 0; r < plan->n; r++) {
        const fsdp_local_rank *rank = &plan->ranks[r];

        for (size_t g = 0; g < node->n_gpus; g++) {
            plan->may_use[r * node->n_gpus + g] = rank->n_visible < 0;
        }
        for (int d = 0; d < rank->n_visible && d < FSDP_MOST_GPUS; d++) {
            const int g = fsdpi_node_gpu(node, rank->visible[d].address, rank->visible[d].ordinal);

            if (g >= 0) {
                plan->may_use[r * node->n_gpus + (size_t)g] = true;
            }
        }
    }
}

/* The first core that each GPU is next to; those of unknown locality come last. */
static int first_core(const fsdp_node *node, const fsdp_gpu *gpu)
{
    size_t c = 0;

    while (c < node->n_cores && !fsdpi_mask_meets(&node->cores[c].threads, &gpu->threads)) {
        c++;
    }
    return (int)c;
}

static void find_positions(fsdpi_planning *plan)
{
    const fsdp_node *node = plan->node;

    for (size_t g = 0; g < node->n_gpus; g++) {
        const int core = first_core(node, &node->gpus[g]);

        plan->position[g] = 0;
        for (size_t h = 0; h < node->n_gpus; h++) {
            const int other = first_core(node, &node->gpus[h]);
            plan->position[g] += other < core || (other == core && h < g);
        }
    }
}

static fsdp_status check_ranks(const char *function, const fsdp_node *node, const fsdp_local_rank *ranks, size_t n,
                               const fsdp_place *places)
{
    if (node == NULL || ranks == NULL || places == NULL || n < 1 || n > MOST_RANKS) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: an argument is NULL, or %zu ranks; 1 to %d can be planned", function,
                          n, MOST_RANKS);
    }
    for (size_t r = 0; r < n; r++) {
        if (!fsdpi_mask_meets(&ranks[r].threads, &node->threads)) {
            char mine[64], all[64];

            fsdp_mask_text(&ranks[r].threads, mine, sizeof mine);
            fsdp_mask_text(&node->threads, all, sizeof all);
            return fsdpi_fail(
                NULL, FSDP_ERR_ARG,
                "%s: rank %d's mask is %s, and the machine has the hardware threads %s; give the rank some of "
                "these",
                function, ranks[r].rank, mine, all);
        }
    }
    return FSDP_OK;
}

static fsdp_status open_planning(const char *function, const fsdp_node *node, const fsdp_local_rank *ranks, size_t n,
                                 fsdp_place *places, fsdpi_planning *plan)
{
    *plan = (fsdpi_planning){.node = node, .ranks = ranks, .n = n, .places = places};
    FSDP_TRY(check_ranks(function, node, ranks, n, places));
    plan->masks    = malloc(2 * n * sizeof *plan->masks);
    plan->regions  = plan->masks != NULL ? plan->masks + n : NULL;
    plan->sharers  = malloc(2 * n * sizeof *plan->sharers);
    plan->first    = plan->sharers != NULL ? plan->sharers + n : NULL;
    plan->may_use  = malloc(n * node->n_gpus + 1);
    plan->position = malloc((node->n_gpus + 1) * sizeof *plan->position);
    if (plan->masks == NULL || plan->sharers == NULL || plan->may_use == NULL || plan->position == NULL) {
        close_planning(plan);
        (void)fsdpi_fail(NULL, FSDP_ERR_MEMORY, "%s: no memory to plan %zu ranks", function, n);
        return FSDP_ERR_MEMORY;
    }
    for (size_t r = 0; r < n; r++) {
        plan->masks[r] = fsdpi_mask_both(&ranks[r].threads, &node->threads);
        memset(&places[r], 0, sizeof places[r]);
        places[r].gpu   = -1;
        places[r].spare = -1;
        places[r].nic   = -1;
    }
    find_sharers(plan);
    find_usable(plan);
    find_positions(plan);
    return FSDP_OK;
}

/* HIP's number of a GPU in that process: -1 where it is not known. */
static int device_of(const fsdp_node *node, const fsdp_local_rank *rank, int gpu)
{
    for (int d = 0; gpu >= 0 && d < rank->n_visible && d < FSDP_MOST_GPUS; d++) {
        if (fsdpi_node_gpu(node, rank->visible[d].address, rank->visible[d].ordinal) == gpu) {
            return d;
        }
    }
    return -1;
}

static void finish(const fsdpi_planning *plan)
{
    for (size_t r = 0; r < plan->n; r++) {
        plan->places[r].device = device_of(plan->node, &plan->ranks[r], plan->places[r].gpu);
    }
    fsdpi_plan_rest(plan);
    fsdpi_plan_check(plan);
}

fsdp_status fsdp_plan(const fsdp_node *node, const fsdp_local_rank *ranks, size_t n, fsdp_place *places)
{
    fsdpi_planning plan;

    FSDP_TRY(open_planning("fsdp_plan", node, ranks, n, places, &plan));
    const bool ok = fsdpi_plan_gpus(&plan) && fsdpi_plan_cores(&plan);
    if (ok) {
        fsdpi_plan_tell_gpus(&plan);
        finish(&plan);
    }
    close_planning(&plan);
    return ok ? FSDP_OK : fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_plan: no memory to plan %zu ranks", n);
}

/* -1 where it is not known, or none of the node's. */
static int gpu_in_use(const fsdp_node *node, const fsdp_local_rank *rank)
{
    const fsdp_visible_gpu *used =
        rank->device >= 0 && rank->device < rank->n_visible ? &rank->visible[rank->device] : NULL;

    return used != NULL ? fsdpi_node_gpu(node, used->address, used->ordinal) : -1;
}

fsdp_status fsdp_plan_none(const fsdp_node *node, const fsdp_local_rank *ranks, size_t n, fsdp_place *places)
{
    fsdpi_planning plan;

    FSDP_TRY(open_planning("fsdp_plan_none", node, ranks, n, places, &plan));
    for (size_t r = 0; r < n; r++) {
        places[r].gpu     = gpu_in_use(node, &ranks[r]);
        places[r].threads = plan.masks[r];
    }
    finish(&plan);
    for (size_t r = 0; r < n; r++) {
        places[r].memory_reason[0] = places[r].nic_reason[0] = '\0';
    }
    close_planning(&plan);
    return FSDP_OK;
}
