/* What follows from GPU and cores: memory, network card, a spare core; and the words for the GPU. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/topology/mask.h"
#include "lib/topology/node.h"
#include "lib/topology/plan.h"

__attribute__((format(printf, 3, 4))) static void say(char *reason, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, size, format, arguments);
    va_end(arguments);
}

static void plan_memory(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_node *node  = plan->node;
    const fsdp_mask *may   = &plan->ranks[rank].memory;
    fsdp_place      *place = &plan->places[rank];

    place->numa = fsdpi_domain_of(node->numas, node->n_numas, &place->threads);
    if (place->numa < 0) {
        say(place->memory_reason, FSDP_REASON_BYTES, "wherever it is touched: its cores are on several NUMA nodes");
    } else if (!fsdpi_mask_is_empty(may) && !fsdp_mask_has(may, node->numas[place->numa].number)) {
        say(place->memory_reason, FSDP_REASON_BYTES, "left alone: it may not allocate on NUMA node %d",
            node->numas[place->numa].number);
        place->numa = -1;
    } else {
        say(place->memory_reason, FSDP_REASON_BYTES, "NUMA node %d, as its cores", node->numas[place->numa].number);
        for (size_t i = 0; i < node->n_memories; i++) {
            const size_t used = strlen(place->memory_reason);

            if (node->memories[i].numa == place->numa) {
                say(place->memory_reason + used, FSDP_REASON_BYTES - used, "; node %d (%s) beside it is left alone",
                    node->memories[i].number, node->memories[i].kind);
            }
        }
    }
}

/* ---- network ----------------------------------------------------------------------------------------------------- */

/* The GPU's card where there is a GPU: it is its data that travels. */
static int distance_to_nic(const fsdp_node *node, const fsdp_place *place, const fsdp_nic *nic)
{
    const fsdp_gpu *gpu  = place->gpu >= 0 && node->gpus[place->gpu].numa >= 0 ? &node->gpus[place->gpu] : NULL;
    const int       numa = gpu != NULL ? gpu->numa : place->numa;
    const int package = gpu != NULL ? gpu->package : fsdpi_domain_of(node->packages, node->n_packages, &place->threads);

    if (fsdpi_mask_is_empty(&nic->threads)) {
        return 3;
    }
    if (fsdpi_mask_meets(&nic->threads, gpu != NULL ? &gpu->threads : &place->threads)) {
        return 0;
    }
    if (numa >= 0 && nic->numa == numa) {
        return 1;
    }
    return package >= 0 && nic->package == package ? 2 : 3;
}

static void plan_nic(const fsdpi_planning *plan, size_t rank)
{
    static const char *const WHERE[] = {"next to it", "on its NUMA node", "in its package", "elsewhere on the node"};
    const fsdp_node         *node    = plan->node;
    fsdp_place              *place   = &plan->places[rank];
    int                      fabric = 0, best_distance = 0, best_users = 0;

    place->nic = -1;
    for (size_t i = 0; i < node->n_nics; i++) {
        fabric |= node->nics[i].fabric;
    }
    for (size_t i = 0; i < node->n_nics; i++) {
        const int distance = distance_to_nic(node, place, &node->nics[i]);
        int       users    = 0;

        for (size_t r = 0; r < rank; r++) {
            users += plan->places[r].nic == (int)i;
        }
        if (node->nics[i].fabric == fabric &&
            (place->nic < 0 || distance < best_distance || (distance == best_distance && users < best_users))) {
            place->nic    = (int)i;
            best_distance = distance;
            best_users    = users;
        }
    }
    if (place->nic < 0) {
        say(place->nic_reason, FSDP_REASON_BYTES, "no network card is known");
    } else {
        say(place->nic_reason, FSDP_REASON_BYTES, "the nearest, %s%s", WHERE[best_distance],
            best_users > 0 ? "; other ranks use it too" : "");
    }
}

/* ---- spare core -------------------------------------------------------------------------------------------------- */

static bool is_taken(const fsdpi_planning *plan, size_t rank, const fsdp_mask *core)
{
    for (size_t r = 0; r < plan->n; r++) {
        if (fsdpi_mask_meets(&plan->places[r].threads, core) ||
            (r < rank && plan->places[r].spare >= 0 && fsdp_mask_has(core, plan->places[r].spare))) {
            return true;
        }
    }
    return false;
}

static void plan_spare(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_node *node  = plan->node;
    fsdp_place      *place = &plan->places[rank];

    place->spare = -1;
    for (size_t c = 0; c < node->n_cores && place->numa >= 0 && place->spare < 0; c++) {
        const fsdp_mask core = fsdpi_mask_both(&node->cores[c].threads, &plan->masks[rank]);

        if (node->cores[c].numa == place->numa && !fsdpi_mask_is_empty(&core) &&
            !is_taken(plan, rank, &node->cores[c].threads)) {
            place->spare = fsdpi_mask_first(&core);
        }
    }
}

void fsdpi_plan_rest(const fsdpi_planning *plan)
{
    for (size_t r = 0; r < plan->n; r++) {
        plan_memory(plan, r);
    }
    for (size_t r = 0; r < plan->n; r++) {
        plan_nic(plan, r);
        plan_spare(plan, r);
    }
}

/* ---- words for the GPU ------------------------------------------------------------------------------------------- */

static size_t count_usable(const fsdpi_planning *plan, size_t rank)
{
    size_t count = 0;

    for (size_t g = 0; g < plan->node->n_gpus; g++) {
        count += plan->may_use[rank * plan->node->n_gpus + g];
    }
    return count;
}

static void where_is(const fsdpi_planning *plan, size_t rank, char *text, size_t size)
{
    const fsdp_node *node = plan->node;
    const fsdp_gpu  *gpu  = &node->gpus[plan->places[rank].gpu];
    const int        numa = gpu->numa >= 0 ? node->numas[gpu->numa].number : -1;

    switch (fsdpi_distance_to(node, &plan->masks[rank], gpu)) {
    case FSDPI_NEAREST:
    case FSDPI_SAME_NUMA:
        (void)snprintf(text, size, numa >= 0 ? "local, on NUMA node %d" : "local", numa);
        break;
    case FSDPI_DISTANCE_UNKNOWN:
        (void)snprintf(text, size, "its locality is not known");
        break;
    case FSDPI_SAME_PACKAGE:
    case FSDPI_FAR:
        (void)snprintf(text, size, "remote, on NUMA node %d: no nearer one is free for it", numa);
        break;
    }
}

static int count_users(const fsdpi_planning *plan, size_t rank)
{
    int users = 0;

    for (size_t r = 0; r < plan->n; r++) {
        users += plan->places[r].gpu == plan->places[rank].gpu;
    }
    return users;
}

void fsdpi_plan_tell_gpus(const fsdpi_planning *plan)
{
    for (size_t r = 0; r < plan->n; r++) {
        fsdp_place  *place  = &plan->places[r];
        const size_t usable = count_usable(plan, r);
        char         where[64], shared[48] = "";

        if (place->gpu < 0) {
            say(place->gpu_reason, FSDP_REASON_BYTES,
                plan->node->n_gpus > 0 ? "none: HIP gives this process none of the node's %zu"
                                       : "none: the node has none",
                plan->node->n_gpus);
            continue;
        }
        where_is(plan, r, where, sizeof where);
        const int users = count_users(plan, r);
        if (users > 1) {
            (void)snprintf(shared, sizeof shared, "; shared by %d ranks", users);
        }
        say(place->gpu_reason, FSDP_REASON_BYTES, "%s%s%s", usable == 1 ? "the only one it sees; " : "", where, shared);
    }
}
