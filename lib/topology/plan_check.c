/* What is wrong with a place, planned or found. */
#include "lib/topology/mask.h"
#include "lib/topology/plan.h"

static unsigned check_gpu(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_node  *node       = plan->node;
    const fsdp_place *place      = &plan->places[rank];
    unsigned          deviations = 0;

    if (place->gpu < 0) {
        return node->n_gpus > 0 && plan->ranks[rank].n_visible >= 0 ? FSDP_NO_GPU : 0;
    }
    const fsdp_gpu *gpu = &node->gpus[place->gpu];
    for (size_t r = 0; r < plan->n; r++) {
        deviations |= r != rank && plan->places[r].gpu == place->gpu ? (unsigned)FSDP_SHARED_GPU : 0;
    }
    switch (fsdpi_distance_to(node, &place->threads, gpu)) {
    case FSDPI_NEAREST:
    case FSDPI_SAME_NUMA:
        break;
    case FSDPI_DISTANCE_UNKNOWN:
        deviations |= FSDP_UNKNOWN_LOCALITY;
        break;
    case FSDPI_SAME_PACKAGE:
    case FSDPI_FAR: {
        const fsdp_mask near = fsdpi_numa_threads(node, gpu);
        deviations |= FSDP_REMOTE_GPU;
        deviations |= fsdpi_mask_meets(&near, &plan->masks[rank]) ? 0 : (unsigned)FSDP_MASKED_GPU;
        break;
    }
    }
    return deviations;
}

static size_t count_touched(const fsdp_domain *domains, size_t n, const fsdp_mask *threads)
{
    size_t touched = 0;

    for (size_t i = 0; i < n; i++) {
        touched += fsdpi_mask_meets(threads, &domains[i].threads);
    }
    return touched;
}

/* Whether a rank has all that its mask has of a domain, and no other rank has any of it. */
static bool is_its_own(const fsdpi_planning *plan, const fsdp_domain *domain, size_t rank)
{
    const fsdp_mask may = fsdpi_mask_both(&plan->masks[rank], &domain->threads);

    for (size_t r = 0; r < plan->n; r++) {
        if (r != rank && fsdpi_mask_meets(&plan->places[r].threads, &domain->threads)) {
            return false;
        }
    }
    return fsdpi_mask_within(&may, &plan->places[rank].threads);
}

/* Whether a rank is on several domains that are not all its own. */
static bool is_cut(const fsdpi_planning *plan, const fsdp_domain *domains, size_t n, size_t rank)
{
    const fsdp_mask *mine = &plan->places[rank].threads;

    if (count_touched(domains, n, mine) < 2) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (fsdpi_mask_meets(mine, &domains[i].threads) && !is_its_own(plan, &domains[i], rank)) {
            return true;
        }
    }
    return false;
}

size_t fsdpi_count_cores(const fsdp_node *node, const fsdp_mask *threads)
{
    size_t count = 0;

    for (size_t c = 0; c < node->n_cores; c++) {
        count += fsdpi_mask_meets(&node->cores[c].threads, threads);
    }
    return count;
}

static bool is_crowded(const fsdpi_planning *plan, size_t rank)
{
    return fsdpi_count_cores(plan->node, &plan->masks[rank]) < (size_t)plan->sharers[rank];
}

/* Kinds are in the order of speed, the fastest first. */
static bool has_slower_cores(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_node *node    = plan->node;
    int              slowest = 0, fastest = (int)node->n_kinds;

    for (size_t c = 0; c < node->n_cores && node->n_kinds > 1; c++) {
        const fsdp_domain *core = &node->cores[c];

        if (core->kind > slowest && fsdpi_mask_meets(&core->threads, &plan->places[rank].threads)) {
            slowest = core->kind;
        }
        for (size_t r = 0; r < plan->n && core->kind < fastest; r++) {
            fastest = fsdpi_mask_meets(&core->threads, &plan->places[r].threads) ? core->kind : fastest;
        }
    }
    return slowest > fastest;
}

static unsigned check_cores(const fsdpi_planning *plan, size_t rank, bool few)
{
    const fsdp_node  *node       = plan->node;
    const fsdp_place *place      = &plan->places[rank];
    unsigned          deviations = few || is_crowded(plan, rank) ? (unsigned)FSDP_FEW_CORES : 0;

    for (size_t r = 0; r < plan->n; r++) {
        deviations |= r != rank && fsdpi_mask_meets(&plan->places[r].threads, &place->threads)
                          ? (unsigned)FSDP_OVERLAPPING_CORES
                          : 0;
    }
    if (is_cut(plan, node->caches, node->n_caches, rank)) {
        deviations |= FSDP_CROSSES_CACHE;
    }
    if (is_cut(plan, node->numas, node->n_numas, rank) ||
        (plan->n >= node->n_numas && count_touched(node->numas, node->n_numas, &place->threads) > 1)) {
        deviations |= FSDP_CROSSES_NUMA;
    }
    deviations |= has_slower_cores(plan, rank) ? (unsigned)FSDP_SLOWER_CORES : 0;
    if (!fsdpi_mask_within(&plan->ranks[rank].threads, &node->threads)) {
        deviations |= FSDP_OUTSIDE_MACHINE;
    }
    return deviations;
}

void fsdpi_plan_check(const fsdpi_planning *plan)
{
    fsdp_mask all = {{0}};

    for (size_t r = 0; r < plan->n; r++) {
        fsdpi_mask_include(&all, &plan->masks[r]);
    }
    const bool few = fsdpi_count_cores(plan->node, &all) < plan->n;
    for (size_t r = 0; r < plan->n; r++) {
        plan->places[r].deviations = check_gpu(plan, r) | check_cores(plan, r, few) |
                                     (plan->ranks[r].at_odds ? (unsigned)FSDP_VISIBLE_AT_ODDS : 0);
    }
}
