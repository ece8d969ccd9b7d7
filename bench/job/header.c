#include "bench/job/header.h"

#include <stdio.h>

#include "bench/job/gpu_rate.h"
#include "bench/machine/link.h"

#define GB 1e9

fsdp_status bench_limits_measure(bench_job *job)
{
    const bench_world *world = job->world;
    bench_limits      *l     = &job->limits;

    l->nodes     = fsdp_node_count(world->ctx);
    l->node_size = fsdp_node_size(world->ctx);
    MPI_Allreduce(MPI_IN_PLACE, &l->node_size, 1, MPI_INT, MPI_MAX, world->comm);
    if (job->options->memory_rate) {
        l->memory      = (double)job->options->memory_rate;
        job->bandwidth = (bench_bandwidth){.copy = -1, .triad = -1, .pages = -1, .best = l->memory};
    } else if (!job->gpu) {
        BENCH_TRY(bench_bandwidth_measure(world, &job->bandwidth));
        l->memory = job->bandwidth.best;
        MPI_Bcast(&l->memory, 1, MPI_DOUBLE, 0, world->comm);
    }
    l->link = job->options->link_rate ? (double)job->options->link_rate / 8 : bench_link_measure(world);
    return FSDP_OK;
}

void bench_gpu_limits_measure(bench_job *job, size_t bytes)
{
    if (job->gpu) {
        job->limits.memory = bench_gpu_copy_rate(job, bytes);
        job->bandwidth     = (bench_bandwidth){
                .copy = job->limits.memory, .triad = -1, .pages = -1, .best = job->limits.memory, .array_bytes = bytes};
    }
}

const char *bench_level_name(int level)
{
    return level == MPI_THREAD_MULTIPLE     ? "multiple"
           : level == MPI_THREAD_SERIALIZED ? "serialized"
           : level == MPI_THREAD_FUNNELED   ? "funneled"
                                            : "single";
}

const char *bench_level_here(const bench_job *job)
{
    return job->options->thread_level ? "single" : "multiple";
}

const char *bench_level_other(const bench_job *job)
{
    return job->options->thread_level ? "multiple" : "single";
}

static void print_links(const bench_job *job)
{
    if (job->limits.nodes > 1) {
        printf("# link       %.3f GB/s per node and direction, %s\n", job->limits.link / GB,
               job->options->link_rate ? "as given" : "measured: every rank streams to the next node");
    }
}

static void print_sides(const bench_job *job)
{
    const bench_options *o = job->options;

    printf("# MPI        %s, thread level %s; progress thread: %s\n", job->host.mpi,
           bench_level_name(job->world->level), fsdp_has_progress_thread(job->world->ctx) ? "yes" : "no");
    if (job->twin.there) {
        printf("# twin       a second job of %d ranks measures MPI at thread level %s\n", job->world->size,
               bench_level_other(job));
    } else {
        printf("# twin       none (%s): MPI at thread level %s is not measured\n", job->twin.why_not,
               bench_level_other(job));
    }
    if (o->op == FSDP_AVG) {
        printf("# note       MPI has no average: its sum is timed\n");
    }
    if (o->dtype == FSDP_BF16 || o->dtype == FSDP_F16) {
        printf("# note       MPI has no reductions of %s: they are not timed\n", fsdp_dtype_name(o->dtype));
    }
}

static void print_turns(const bench_job *job)
{
    if (bench_job_takes_turns(job->options)) {
        printf("# buffers    take turns: each iteration uses the next part of %zu MiB, which no cache holds; "
               "--reuse-buffers: "
               "the same\n",
               job->buffers.bytes >> 20);
    } else {
        printf("# buffers    the same in every iteration: small sizes are in the caches\n");
    }
}

static void print_memory(const bench_job *job, const char *pages)
{
    const bench_bandwidth *b = &job->bandwidth;

    if (job->options->kernels) {
        return;
    }
    if (job->gpu) {
        printf("# device     GPU memory; MPI works on %s\n"
               "# memory     %.2f GB/s per node: copies of %zu bytes inside GPUs, read and written\n",
               fsdp_has_gpu_aware_mpi(job->world->ctx)
                   ? "the same"
                   : "pinned host memory: copies out and in again are part of its time",
               b->copy / GB, b->array_bytes);
        print_turns(job);
        return;
    }
    printf("# pages      %s, on both sides: they use the same buffers\n", pages);
    print_turns(job);
    if (job->options->memory_rate) {
        printf("# memory     %.2f GB/s per node, as given\n", b->best / GB);
        return;
    }
    printf(
        "# memory     %.2f GB/s per node: copy %.2f, triad %.2f, with %s stores; 3 arrays of %zu MiB, cache %zu MiB\n"
        "#            a copy of four pages at once, as ours are on Intel's processors: %.2f\n",
        b->best / GB, b->copy / GB, b->triad / GB, b->stores, b->array_bytes >> 20, b->cache_bytes >> 20,
        b->pages / GB);
}

static void print_header(const bench_job *job, const char *pages)
{
    const bench_limits *l = &job->limits;

    printf("# fsdp-bench %d.%d.%d\n", FSDP_VERSION_MAJOR, FSDP_VERSION_MINOR, FSDP_VERSION_PATCH);
    printf("# host       %s, %d cores, %s; %s\n", job->host.name, job->host.cores, job->host.cpu, job->host.date);
    printf("# ranks      %d: %d node%s of %d rank%s\n", job->world->size, l->nodes, l->nodes > 1 ? "s" : "",
           l->node_size, l->node_size > 1 ? "s" : "");
    print_sides(job);
    print_memory(job, pages);
    print_links(job);
    (void)fflush(stdout);
}

static void record_header(bench_job *job, const char *pages)
{
    const bench_world   *w        = job->world;
    const bench_options *o        = job->options;
    const bench_limits  *l        = &job->limits;
    const int            twin     = job->twin.there;
    const bench_field    fields[] = {
           {"version", fsdp_version(), 0},
           {"date", job->host.date, 0},
           {"host", job->host.name, 0},
           {"cpu", job->host.cpu, 0},
           {"cores", NULL, job->host.cores},
           {"ranks", NULL, w->size},
           {"nodes", NULL, l->nodes},
           {"ranks_per_node", NULL, l->node_size},
           {"mpi", job->host.mpi, 0},
           {"thread_level", bench_level_name(w->level), 0},
           {"twin_thread_level", twin ? bench_level_other(job) : "none", 0},
           {"progress_thread", NULL, fsdp_has_progress_thread(w->ctx)},
           {"device", job->gpu ? "gpu" : "host", 0},
           {"memory", o->memory == BENCH_MEMORY_USER ? "user" : "symmetric", 0},
           {"pages", pages, 0},
           {"buffers", bench_job_takes_turns(o) ? "in turn" : "reused", 0},
           {"memory_copy_gb_s", NULL, job->bandwidth.copy / GB},
           {"memory_triad_gb_s", NULL, job->bandwidth.triad / GB},
           {"memory_pages_gb_s", NULL, job->bandwidth.pages / GB},
           {"link_gb_s", NULL, l->nodes > 1 ? l->link / GB : -1},
           {"repeat", NULL, (double)o->repeat},
    };

    bench_records_header(&job->records, fields, sizeof fields / sizeof fields[0]);
}

void bench_header_print(bench_job *job)
{
    const void *memory = job->options->shared ? job->buffers.node_out : job->buffers.host_out;
    char        pages[120];

    bench_host_find(job->world, &job->host);
    if (job->world->rank != 0) {
        return;
    }
    bench_describe_pages(memory ? memory : job->buffers.host_out, pages, sizeof pages);
    print_header(job, pages);
    record_header(job, pages);
}
