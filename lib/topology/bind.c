/*
 * Binding at fsdp_init(). One rank of each host reads the topology and plans, since reading it costs tens of milliseconds
 * and more where many do so at once; the others are told. So all ranks of a host hold parts of one plan.
 */
#include "lib/topology/bind.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/yielding.h"
#include "lib/device/gpu.h"
#include "lib/node/nodes.h"
#include "lib/topology/cpu_quota.h"
#include "lib/topology/mask.h"
#include "lib/topology/progress_cpu.h"

/* What `strict` does not put up with. Caches are not among them: 3 ranks on 2 caches are as well placed as can be. */
static const unsigned FAULTS = FSDP_SHARED_GPU | FSDP_REMOTE_GPU | FSDP_NO_GPU | FSDP_UNKNOWN_LOCALITY |
                               FSDP_OVERLAPPING_CORES | FSDP_FEW_CORES | FSDP_OUTSIDE_MACHINE | FSDP_VISIBLE_AT_ODDS |
                               FSDP_MASKED_GPU;

/* ---- planning for a host ----------------------------------------------------------------------------------------- */

typedef struct decision {
    const fsdpi_core      *core;
    bool                   strict;
    const fsdp_local_rank *ranks;
    size_t                 n;
    fsdpi_bind_order      *orders;
} decision;

static void leave(const decision *d, size_t rank)
{
    fsdpi_bind_order *order = &d->orders[rank];

    *order         = (fsdpi_bind_order){.spare = -1, .memory = -1, .device = -1, .status = FSDP_OK};
    order->threads = d->ranks[rank].threads;
}

/* The same for every rank of the host: left alone under FSDP_OK, else this error. */
__attribute__((format(printf, 3, 4))) static void settle_all(const decision *d, fsdp_status status, const char *format,
                                                             ...)
{
    char    text[FSDPI_BINDING_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t r = 0; r < d->n; r++) {
        leave(d, r);
        d->orders[r].status = (int32_t)status;
        (void)snprintf(d->orders[r].text, sizeof d->orders[r].text, "%s", text);
    }
}

/* Why nothing can be bound on this host: an error under `strict`, else a reason to leave it. */
static void give_up(const decision *d, int rank, const char *why)
{
    if (!d->strict) {
        settle_all(d, FSDP_OK, "left alone: %s", why);
    } else if (rank >= 0) {
        settle_all(d, FSDP_ERR_UNSUPPORTED, "FSDP_BIND is 'strict', but rank %d: %s; use 'auto', or another launch",
                   rank, why);
    } else {
        settle_all(d, FSDP_ERR_UNSUPPORTED, "FSDP_BIND is 'strict', but %s; use 'auto'", why);
    }
}

static fsdp_mask all_masks(const decision *d)
{
    fsdp_mask all = {{0}};

    for (size_t r = 0; r < d->n; r++) {
        fsdpi_mask_include(&all, &d->ranks[r].threads);
    }
    return all;
}

static bool has_gpus(const decision *d)
{
    bool has = false;

    for (size_t r = 0; r < d->n; r++) {
        has = has || d->ranks[r].n_visible > 0;
    }
    return has;
}

/* Whether there is nothing to plan, which can be known without reading the topology. */
static bool is_settled(const decision *d)
{
    const fsdp_mask all       = all_masks(d);
    const int       processes = fsdpi_processes_on_host();

    if (processes > (int)d->n) {
        settle_all(d, FSDP_OK,
                   "left alone: the launcher has %d processes on this node, and the context has %zu of them", processes,
                   d->n);
        return true;
    }
    if (!d->strict && d->core->config.topology[0] == '\0' && !has_gpus(d) && fsdpi_is_flat("", &all)) {
        settle_all(d, FSDP_OK,
                   "left alone: one NUMA node, one last-level cache and no GPU: no place is nearer than another");
        return true;
    }
    return false;
}

/* A rank that has nothing of what this one sees of the machine, as where control groups differ; -1: none. */
static int find_outsider(const decision *d, const fsdp_node *node)
{
    for (size_t r = 0; r < d->n; r++) {
        if (!fsdpi_mask_meets(&d->ranks[r].threads, &node->threads)) {
            return (int)r;
        }
    }
    return -1;
}

static int find_faulty(const decision *d, const fsdp_place *places)
{
    for (size_t r = 0; r < d->n && d->strict; r++) {
        if ((places[r].deviations & FAULTS) != 0) {
            return (int)r;
        }
    }
    return -1;
}

static void tell(const fsdp_node *node, const fsdp_place *place, fsdpi_bind_order *order)
{
    char cores[64], gpu[FSDP_ADDRESS_BYTES + 8] = "no GPU", memory[32] = "memory left alone";

    fsdp_mask_text(&order->threads, cores, sizeof cores);
    if (place->gpu >= 0) {
        (void)snprintf(gpu, sizeof gpu, "GPU %s", node->gpus[place->gpu].address);
    }
    if (order->memory >= 0) {
        (void)snprintf(memory, sizeof memory, "memory of NUMA node %d", order->memory);
    }
    (void)snprintf(order->text, sizeof order->text, "cores %s (%.90s), %s, %s (%.60s)", cores, place->cores_reason,
                   memory, gpu, place->gpu_reason);
}

/* Where a control group gives less time than the cores that it shows, which cores are free changes by the moment. */
static bool is_short_of_time(const decision *d, const fsdp_node *node)
{
    const fsdp_mask all = all_masks(d);

    return !d->strict && node->cpu_quota > 0.0 && node->cpu_quota < (double)fsdp_mask_count(&all);
}

static void order_place(const decision *d, const fsdp_node *node, fsdp_place *place, size_t rank)
{
    fsdpi_bind_order *order = &d->orders[rank];

    leave(d, rank);
    order->device = place->device;
    if (is_short_of_time(d, node)) {
        (void)snprintf(place->cores_reason, sizeof place->cores_reason,
                       "left alone: the control group allows the time of %.2f cores", node->cpu_quota);
    } else {
        order->threads = place->threads;
        order->spare   = place->spare;
        order->memory  = place->numa >= 0 && node->n_numas > 1 ? node->numas[place->numa].number : -1;
    }
    tell(node, place, order);
}

static void plan_on(const decision *d, const fsdp_node *node, fsdp_place *places)
{
    const int outsider = find_outsider(d, node);

    if (outsider >= 0) {
        give_up(d, d->ranks[outsider].rank, "its mask is outside of what can be seen of the machine");
        return;
    }
    if (fsdp_plan(node, d->ranks, d->n, places) != FSDP_OK) {
        settle_all(d, FSDP_ERR_MEMORY, "%s", fsdp_last_error(NULL));
        return;
    }
    const int faulty = find_faulty(d, places);
    if (faulty >= 0) {
        const unsigned faults = places[faulty].deviations & FAULTS;

        give_up(d, d->ranks[faulty].rank, fsdp_deviation_text((fsdp_deviation)(faults & -faults)));
        return;
    }
    for (size_t r = 0; r < d->n; r++) {
        order_place(d, node, &places[r], r);
    }
}

static void decide(const decision *d)
{
    const char    *file = d->core->config.topology[0] != '\0' ? d->core->config.topology : NULL;
    fsdp_topology *topology;

    if (is_settled(d)) {
        return;
    }
    const fsdp_status status = fsdp_topology_open(file, &topology);
    if (status != FSDP_OK) {
        settle_all(d, status, "%s", fsdp_last_error(NULL));
        return;
    }
    const fsdp_node *node   = fsdp_topology_node(topology);
    fsdp_place      *places = malloc(d->n * sizeof *places);
    if (places == NULL) {
        settle_all(d, FSDP_ERR_MEMORY, "fsdp_init: no memory to plan %zu ranks", d->n);
    } else if (!node->is_here) {
        give_up(d, -1, "FSDP_TOPOLOGY is a record of another machine");
    } else {
        plan_on(d, node, places);
    }
    free(places);
    fsdp_topology_close(topology);
}

/* ---- on every rank ----------------------------------------------------------------------------------------------- */

/* A device that the caller has chosen stays: 0 is what one has who has not. Returns whether there is one. */
static bool keep_choice(fsdp_local_rank *mine)
{
    if (mine->device <= 0 || mine->device >= mine->n_visible) {
        return false;
    }
    mine->visible[0] = mine->visible[mine->device];
    mine->n_visible  = 1;
    mine->device     = 0;
    return true;
}

/* Gathers what the ranks may use, decides on the first of them, and hands out the orders. */
static fsdp_status exchange(const fsdpi_core *core, MPI_Comm host, const fsdp_local_rank *mine, fsdp_local_rank *ranks,
                            fsdpi_bind_order *orders)
{
    const int timeout_s = core->config.timeout_s;
    int       rank, n, all = ranks != NULL && orders != NULL;

    (void)MPI_Comm_rank(host, &rank);
    (void)MPI_Comm_size(host, &n);
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, host, timeout_s));
    if (!all || ranks == NULL || orders == NULL) {
        return fsdpi_fail_together(core->ctx, FSDP_ERR_MEMORY, "fsdp_init: no memory to plan the %d ranks of a node",
                                   n);
    }
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allgather(mine, ranks, (int)sizeof *mine, MPI_BYTE, host, timeout_s));
    if (rank == 0) {
        const decision d = {core, core->config.bind == FSDP_BIND_STRICT, ranks, (size_t)n, orders};

        decide(&d);
    }
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_broadcast(orders, n * (int)sizeof *orders, MPI_BYTE, 0, host, timeout_s));
    orders[0] = orders[rank];
    return FSDP_OK;
}

/* What binds the threads of this program, as far as can be seen; NULL: nothing. */
static const char *own_binding(void)
{
    static const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    static const char *const off[]   = {"false", "", "", "disabled"};
    fsdp_mask                now;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);

        if (value != NULL && value[0] != '\0' && strcasecmp(value, off[i]) != 0 && strcasecmp(value, "none") != 0) {
            return names[i];
        }
    }
    return fsdpi_mask_now(&now) && fsdpi_is_bound_by_program(&now) ? "the program" : NULL;
}

/* Cores that others have bound stay, and so does memory, which would go with them. The GPU is as planned. */
static fsdpi_bind_order respectful(const fsdpi_core *core, const fsdpi_bind_order *order)
{
    const char      *binder = core->config.bind != FSDP_BIND_STRICT ? own_binding() : NULL;
    fsdpi_bind_order own    = *order;

    if (binder != NULL && order->status == FSDP_OK) {
        own.spare  = -1;
        own.memory = -1;
        (void)fsdpi_mask_now(&own.threads);
        (void)snprintf(own.text, sizeof own.text, "cores and memory left alone: %s binds threads; the plan had: %.200s",
                       binder, order->text);
    }
    return own;
}

static fsdp_status carry_out(const fsdpi_core *core, const fsdpi_bind_order *order, fsdpi_binding *binding)
{
    const bool strict = core->config.bind == FSDP_BIND_STRICT;
    char       failed[128];

    if (order->status == FSDP_OK && core->config.bind == FSDP_BIND_DRY) {
        (void)snprintf(binding->text, sizeof binding->text, "dry run, nothing is bound; 'auto' would: %.260s",
                       order->text);
        return FSDP_OK;
    }
    if (order->status != FSDP_OK) { /* the rank that planned has printed it, or nobody has */
        return fsdpi_record(core->ctx, (fsdp_status)order->status, "%s", order->text);
    }
    fsdpi_bind_apply(order, strict, binding, failed, sizeof failed);
    if (failed[0] != '\0' && strict) {
        return fsdpi_fail_together(core->ctx, FSDP_ERR_UNSUPPORTED,
                                   "FSDP_BIND is 'strict', but the system refuses rank %d: %s; use 'auto'", core->rank,
                                   failed);
    }
    (void)snprintf(binding->text, sizeof binding->text, failed[0] != '\0' ? "%.180s; the system refuses %s" : "%s",
                   order->text, failed);
    return FSDP_OK;
}

static fsdp_status bind_on(const fsdpi_core *core, MPI_Comm host, fsdpi_binding *binding)
{
    fsdp_local_rank mine;
    int             n;

    (void)MPI_Comm_size(host, &n);
    (void)fsdp_local_rank_look(&mine);
    mine.rank                = core->rank;
    const bool        chosen = keep_choice(&mine);
    fsdp_local_rank  *ranks  = calloc((size_t)n, sizeof *ranks);
    fsdpi_bind_order *orders = calloc((size_t)n, sizeof *orders);
    fsdp_status       status = exchange(core, host, &mine, ranks, orders);

    if (status == FSDP_OK) {
        orders[0].device             = chosen ? -1 : orders[0].device;
        const fsdpi_bind_order order = respectful(core, &orders[0]);
        status                       = carry_out(core, &order, binding);
    }
    free(ranks);
    free(orders);
    return status;
}

/* ---- the progress thread ----------------------------------------------------------------------------------------- */

/* How many threads compute; NULL: that is not known, or they are spread over all cores, whichever these are. */
static const char *computing_threads(void)
{
    const char *places = getenv("OMP_PROC_BIND");

    return places != NULL && strcasestr(places, "spread") != NULL ? NULL : getenv("OMP_NUM_THREADS");
}

static fsdpi_cpu_claim claim_of(const fsdpi_core *core, const fsdpi_binding *binding)
{
    fsdpi_cpu_claim claim = {
        .rank = core->rank, .wanted = core->config.progress_cpu, .spare = binding->spare, .idle = -1};

    (void)fsdpi_mask_now(&claim.threads);
    claim.launched = fsdpi_mask_launched(&claim.threads);
    claim.idle     = fsdpi_idle_cpu("", &claim.threads, computing_threads());
    return claim;
}

static void settle_progress(const fsdpi_core *core, const fsdpi_cpu_claim *claims, size_t n, size_t mine,
                            fsdpi_binding *binding, char *why, size_t size)
{
    const double quota = fsdpi_cpu_quota("");
    const bool shared = fsdpi_processes_on_host() > (int)n || (quota > 0.0 && quota < (double)fsdpi_claimed(claims, n));

    binding->share = fsdpi_share_of_core(claims, n, quota);
    binding->spare = fsdpi_progress_cpu(claims, n, mine, shared, why, size);
    if (binding->spare >= 0 && core->config.progress != FSDP_PROGRESS_INLINE && core->size > 1) {
        const size_t used = strlen(binding->text);

        (void)snprintf(binding->text + used, sizeof binding->text - used,
                       "; hardware thread %d for the progress thread", binding->spare);
    }
}

/* Whatever FSDP_BIND says: who computes where is known by now. */
static fsdp_status place_progress(const fsdpi_core *core, MPI_Comm host, fsdpi_binding *binding)
{
    const fsdpi_cpu_claim own = claim_of(core, binding);
    int                   mine, n;
    char                  why[256] = "";

    (void)MPI_Comm_rank(host, &mine);
    (void)MPI_Comm_size(host, &n);
    fsdpi_cpu_claim *claims = calloc((size_t)n, sizeof *claims);
    int              all    = claims != NULL;
    const int        code   = fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, host, core->config.timeout_s);
    if (code != MPI_SUCCESS || !all || claims == NULL) {
        free(claims);
        FSDPI_TRY_MPI(core->ctx, code);
        return fsdpi_fail_together(core->ctx, FSDP_ERR_MEMORY,
                                   "fsdp_init: no memory to place the progress threads of %d ranks", n);
    }
    const int gathered = fsdpi_mpi_allgather(&own, claims, (int)sizeof own, MPI_BYTE, host, core->config.timeout_s);
    if (gathered == MPI_SUCCESS) {
        settle_progress(core, claims, (size_t)n, (size_t)mine, binding, why, sizeof why);
    }
    free(claims);
    FSDPI_TRY_MPI(core->ctx, gathered);
    return why[0] == '\0' ? FSDP_OK
                          : fsdpi_fail_together(core->ctx, FSDP_ERR_ARG, "FSDP_PROGRESS_CPU is %d, which %s",
                                                core->config.progress_cpu, why);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static fsdp_status bind_and_place(const fsdpi_core *core, MPI_Comm host, fsdpi_binding *binding)
{
    fsdp_status status = FSDP_OK;

    if (core->config.bind == FSDP_BIND_NONE) {
        (void)snprintf(binding->text, sizeof binding->text, "left alone: FSDP_BIND is 'none'");
    } else {
        status = bind_on(core, host, binding);
    }
    if (status == FSDP_ERR_MPI || status == FSDP_ERR_TIMEOUT) {
        return status;
    }
    const fsdp_status placed = place_progress(core, host, binding);
    if (core->config.bind != FSDP_BIND_NONE || binding->spare >= 0) {
        fsdpi_log(core->ctx, FSDP_LOG_INFO, "binding: %s", binding->text);
    }
    return status != FSDP_OK ? status : placed;
}

fsdp_status fsdpi_bind(const fsdpi_core *core, fsdpi_binding *binding)
{
    MPI_Comm host = MPI_COMM_NULL;
    int      node, number;

    *binding = (fsdpi_binding){.spare = -1, .share = 1.0, .device_before = -1};
    if (core->config.node_size == 0) {
        return bind_and_place(core, core->node_comm, binding);
    }
    /* FSDP_NODE_SIZE divides what shares memory */
    FSDP_TRY(fsdpi_nodes_locate(core->ctx, core->comm, core->config.shm_dir, core->config.timeout_s, &node, &number));
    FSDPI_TRY_MPI(core->ctx, MPI_Comm_split(core->comm, node, core->rank, &host));
    const fsdp_status status = bind_and_place(core, host, binding);
    (void)MPI_Comm_free(&host);
    return status;
}
