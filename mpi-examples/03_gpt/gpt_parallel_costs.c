/* Clocks and memory of a rank on a mesh: over all of its contexts, and what they will hold. */
#include "gpt_parallel.h"
#include "mpi-examples/common/example_error.h"

/* Each once: with an axis as long as the job, or with one rank, some are the same. */
static size_t list_contexts(const gpt_mesh *mesh, fsdp_context **contexts)
{
    fsdp_context *const all[GPT_MOST_CONTEXTS] = {mesh->all, mesh->dp, mesh->tp, mesh->pp};
    size_t              n                      = 0, i, k;

    for (i = 0; i < GPT_MOST_CONTEXTS; i++) {
        for (k = 0; k < n && contexts[k] != all[i]; k++) {
        }
        contexts[k] = all[i];
        n += k == n;
    }
    return n;
}

/* Over the contexts of this rank, each once. */
static double sum_seconds(const gpt_parallel *p, double (*of)(const fsdp_context *))
{
    fsdp_context *contexts[GPT_MOST_CONTEXTS];
    const size_t  n       = list_contexts(&p->mesh, contexts);
    double        seconds = 0;
    size_t        i;

    for (i = 0; i < n; i++) {
        seconds += of(contexts[i]);
    }
    return seconds;
}

double gpt_parallel_wait_seconds(const gpt_parallel *p)
{
    return sum_seconds(p, fsdp_wait_seconds) + p->waited;
}

double gpt_parallel_communication_seconds(const gpt_parallel *p)
{
    return sum_seconds(p, fsdp_progress_cpu_seconds) + sum_seconds(p, fsdp_wait_cpu_seconds);
}

fsdp_status gpt_parallel_open_mesh(gpt_parallel *p, fsdp_context *ctx)
{
    const gpt_options *o = p->options;
    fsdp_context      *contexts[GPT_MOST_CONTEXTS];
    size_t             n, i;

    EXAMPLE_TRY(fsdp_memory_usage(ctx, &p->before_dp));
    EXAMPLE_TRY(gpt_mesh_open(ctx, o, &p->mesh));
    n = list_contexts(&p->mesh, contexts);
    for (i = 0; i < n; i++) {
        EXAMPLE_TRY(fsdp_memory_usage(contexts[i], &p->before[i]));
    }
    return p->mesh.dp == ctx ? FSDP_OK : fsdp_memory_usage(p->mesh.dp, &p->before_dp);
}

static void add_memory(fsdp_memory *sum, const fsdp_memory *part, const fsdp_memory *before)
{
    int kind;

    for (kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        sum->current[kind] += part->current[kind] - before->current[kind];
    }
    sum->current_total += part->current_total - before->current_total;
    sum->peak_total += part->peak_total - before->current_total;
}

fsdp_status gpt_parallel_memory(const gpt_parallel *p, fsdp_memory *memory)
{
    fsdp_context *contexts[GPT_MOST_CONTEXTS];
    const size_t  n = list_contexts(&p->mesh, contexts);
    size_t        i;

    EXAMPLE_TRY(fsdp_memory_usage(contexts[0], memory));
    for (i = 1; i < n; i++) {
        fsdp_memory part;

        EXAMPLE_TRY(fsdp_memory_usage(contexts[i], &part));
        add_memory(memory, &part, &p->before[i]);
    }
    return FSDP_OK;
}

fsdp_status gpt_parallel_count_kept_budgets(const gpt_parallel *p, size_t *ranks)
{
    fsdp_memory memory;
    int64_t     kept;

    EXAMPLE_TRY(gpt_parallel_memory(p, &memory));
    kept = memory.peak_total == p->budget.total;
    EXAMPLE_TRY(fsdp_allreduce(p->mesh.all, FSDP_IN_PLACE, &kept, 1, FSDP_I64, FSDP_SUM));
    *ranks = (size_t)kept;
    return FSDP_OK;
}

static void add_to_budget(gpt_parallel *p, fsdp_memory_kind kind, size_t bytes)
{
    p->budget.bytes[kind] += bytes;
    p->budget.total += bytes;
    p->budget.mean_total = p->budget.total;
}

/* BYTES that the library takes for so many. */
static size_t allocated(size_t bytes)
{
    enum { ALIGNMENT = 256 };

    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

fsdp_status gpt_parallel_count_budget(gpt_parallel *p, const fsdp_memory *there)
{
    const gpt_stages *s = &p->stages;
    int               kind;

    EXAMPLE_TRY(fsdp_model_budget(p->model, p->strategy, 0, FSDP_ADAMW, &p->budget));
    for (kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        add_to_budget(p, (fsdp_memory_kind)kind, there->current[kind] - p->before_dp.current[kind]);
    }
    add_to_budget(p, FSDP_MEMORY_BOOKKEEPING,
                  (size_t)p->info.stages_here * allocated((size_t)s->layers_each * sizeof(fsdp_unit *)));
    if (s->has_last) {
        add_to_budget(p, FSDP_MEMORY_BOOKKEEPING,
                      allocated(3 * gpt_division_rows(&s->division, s->batch) * sizeof(double)));
    }
    if (s->first_rank != s->last_rank) {
        add_to_budget(p, FSDP_MEMORY_STAGING, allocated(48 * p->options->pp));
    }
    return FSDP_OK;
}
