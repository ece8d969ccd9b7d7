#include "bench/base/options.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/options.h"

#define MOST_BYTES (1e15)

static int collective_bits(const char *name, size_t length)
{
    int c;

    if (length == 3 && memcmp(name, "all", 3) == 0) {
        return (1 << BENCH_N_COLLECTIVES) - 1;
    }
    for (c = 0; c < BENCH_N_COLLECTIVES; c++) {
        const char *known = bench_collective_name((bench_collective)c);

        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            return 1 << c;
        }
    }
    return 0;
}

static void read_collectives(const cli_option *option, const char *text, void *field, char *message)
{
    const char *name = text;
    int         all  = 0;

    for (;;) {
        const size_t length = strcspn(name, ",");
        const int    bits   = collective_bits(name, length);

        if (!bits) {
            CLI_SAY(message, "--%s has '%.*s'; use a list of %s, or all", option->name,
                    (int)(length < 40 ? length : 40), name,
                    "allgather, reduce_scatter, allreduce, broadcast, reduce, alltoall");
            return;
        }
        all |= bits;
        if (!name[length]) {
            break;
        }
        name += length + 1;
    }
    *(int *)field = all;
}

/* The library's own parsers would print from every rank; the names are looked up here. */
static void read_dtype(const cli_option *option, const char *text, void *field, char *message)
{
    int d;

    for (d = 0; d < FSDP_N_DTYPES; d++) {
        if (strcmp(text, fsdp_dtype_name((fsdp_dtype)d)) == 0) {
            *(fsdp_dtype *)field = (fsdp_dtype)d;
            return;
        }
    }
    CLI_SAY(message, "--%s is '%.60s'; use f64, f32, bf16, f16, i64, i32 or u8", option->name, text);
}

static void read_redop(const cli_option *option, const char *text, void *field, char *message)
{
    int o;

    for (o = 0; o < FSDP_N_REDOPS; o++) {
        if (strcmp(text, fsdp_redop_name((fsdp_redop)o)) == 0) {
            *(fsdp_redop *)field = (fsdp_redop)o;
            return;
        }
    }
    CLI_SAY(message, "--%s is '%.60s'; use sum, avg, min, max or prod", option->name, text);
}

#define ALL_THREE   (1 << BENCH_ALLGATHER | 1 << BENCH_REDUCE_SCATTER | 1 << BENCH_ALLREDUCE)
#define STRATEGIES  "full_shard|no_shard|shard_grad_op|shard_optim|hybrid_shard|hybrid_shard_zero2" /* as they count */
#define FIELD(name) offsetof(bench_options, name)

static const cli_option rows[] = {
    {"collective", CLI_CUSTOM, FIELD(collectives), .read = read_collectives,
     .fallback = "allgather,reduce_scatter,allreduce",
     .help     = "a list of allgather, reduce_scatter, allreduce, broadcast, reduce, alltoall; or all"},
    {"begin", CLI_BYTES, FIELD(begin), 1, MOST_BYTES,
     .fallback = "8, 64K with --overlap, 1M with --async, 64M with --kernels and --lanes",
     .help     = "bytes of the smallest full vector; K, M, G are 1024s"},
    {"end", CLI_BYTES, FIELD(end), 1, MOST_BYTES, .fallback = "256M, 64M with --async and --lanes",
     .help = "bytes of the largest, which is timed whatever --factor is"},
    {"factor", CLI_COUNT, FIELD(factor), 2, 1e6, .fallback = "4, 8 with --async", .help = "from one size to the next"},
    {"dtype", CLI_CUSTOM, FIELD(dtype), .read = read_dtype, .fallback = "f32",
     .help = "f64, f32, bf16, f16, i64, i32 or u8"},
    {"op", CLI_CUSTOM, FIELD(op), .read = read_redop, .fallback = "sum", .help = "sum, avg, min, max or prod"},
    {"ranks-per-node", CLI_COUNT, FIELD(ranks_per_node), 1, 1e6, .fallback = "as found",
     .help = "treat every X ranks as a node"},
    {"device", CLI_CHOICE, FIELD(device), .choices = "host|gpu", .fallback = "host",
     .help =
         "host, or gpu: buffers in the memory of each rank's GPU, and the bound from copies inside it; of the plain "
         "sweep, --shards and --kernels"},
    {"memory", CLI_CHOICE, FIELD(memory), .choices = "symmetric|user", .fallback = "symmetric",
     .help = "symmetric: fsdp_buffer_alloc(); user: malloc(), or hipMalloc()"},
    {"result", CLI_CHOICE, FIELD(shared), .choices = "private|shared", .fallback = "private",
     .help = "private or shared, of allgather; shared: one copy per node, in place; MPI's is private"},
    {"in-place", CLI_FLAG, FIELD(in_place), .help = "input and output in one buffer"},
    {"reuse-buffers", CLI_FLAG, FIELD(reuse),
     .help = "time every iteration on the same memory, which small sizes then find in the caches"},
    {"iterations", CLI_COUNT, FIELD(iterations), 1, 1e9,
     .fallback = "as many as take 50 ms, or 400 ms beside cpu compute; at least 3", .help = "per block"},
    {"warmup", CLI_COUNT, FIELD(warmup), 0, 1e9, .fallback = "3", .help = "iterations before anything is timed"},
    {"repeat", CLI_COUNT, FIELD(repeat), 1, 1e5, .fallback = "5",
     .help = "blocks of ours, each followed by a block of MPI's"},
    {"no-check", CLI_FLAG, FIELD(no_check), .help = "do not check the results"},
    {"thread-level", CLI_CHOICE, FIELD(thread_level), .choices = "multiple|single", .fallback = "multiple",
     .help = "multiple or single, of this job; a twin job of the same size measures MPI at the other one"},
    {"no-twin", CLI_FLAG, FIELD(no_twin), .help = "do not start the twin job"},
    {"link-rate", CLI_RATE, FIELD(link_rate), 1, 1e18, .fallback = "measured",
     .help = "bits per second of a node's link, for the bound; K, M, G are 1000s"},
    {"memory-rate", CLI_RATE, FIELD(memory_rate), 1, 1e18, .fallback = "measured",
     .help = "bytes per second of a node's memory, for the bound; K, M, G are 1000s"},
    {"overlap", CLI_FLAG, FIELD(overlap), .help = "how much of the communication compute hides"},
    {"overlap-compute", CLI_CHOICE, FIELD(overlap_compute), .choices = "timed|cpu", .fallback = "timed",
     .help = "timed: the core sleeps, as when a GPU computes; cpu: it computes"},
    {"floor", CLI_FLAG, FIELD(floor),
     .help = "two ranks on two nodes: the least that point-to-point messages need, beside the library and MPI"},
    {"async", CLI_FLAG, FIELD(async),
     .help = "the progress thread alone, while its caller sleeps; with --overlap-compute cpu also beside compute"},
    {"lanes", CLI_FLAG, FIELD(lanes), .help = "a sum of one number while gathers are under way, and these beside it"},
    {"record", CLI_FLAG, FIELD(record), .help = "what remembering operations costs (FSDP_RECORD)"},
    {"drop-in", CLI_TEXT, FIELD(drop_in),
     .help =
         "plain MPI against MPI with X preloaded, libfsdp_mpi.so or its path, in --repeat rounds of jobs of their own"},
    {"osu", CLI_FLAG, FIELD(osu),
     .help = "with --drop-in: each call timed by itself, a barrier in between, on the same memory, as OSU's benchmarks "
             "do"},
    {"shards", CLI_FLAG, FIELD(shards),
     .help = "what gathering and reducing a unit costs, and the smallest shard that pays"},
    {"step", CLI_FLAG, FIELD(step),
     .help = "training steps of a sharded model, with units gathered ahead (FSDP_PREFETCH) and without"},
    {"units", CLI_COUNT, FIELD(units), 1, 1e5, .fallback = "16", .help = "of that model, all of one size"},
    {"unit-params", CLI_BYTES, FIELD(unit_params), 1, 1e12, .fallback = "1M",
     .help = "parameters of a unit; K, M, G are 1024s"},
    {"strategy", CLI_CHOICE, FIELD(strategy), .choices = STRATEGIES, .fallback = "full_shard",
     .help = "of that model: " STRATEGIES},
    {"fixed-addresses", CLI_FLAG, FIELD(fixed_addresses),
     .help = "parameters of a unit are seen at the same addresses in each pass of that model"},
    {"compute-us", CLI_COUNT, FIELD(compute_us), 1, 1e9,
     .fallback = "as long as the communication; 10000 with --pipeline; none with --checkpoint",
     .help     = "compute of a unit's forward pass, its backward pass takes twice as long; see --overlap-compute"},
    {"checkpoint", CLI_TEXT, FIELD(checkpoint),
     .help = "save and load a state in this folder, in alternation with one dd per rank, and while steps go on"},
    {"state-bytes", CLI_BYTES, FIELD(state_bytes), 1, MOST_BYTES, .fallback = "1G",
     .help =
         "parameters and AdamW's moments of that state, in --units; as much again is taken for a copy, and twice on "
         "the disk"},
    {"pipeline", CLI_FLAG, FIELD(pipeline),
     .help = "steps of pipelines by every schedule, beside the formula and the simulation; --compute-us is of a third "
             "of a pass"},
    {"micro", CLI_COUNT, FIELD(micro), 1, 65536, .fallback = "once, twice and four times the ranks",
     .help = "micro-batches of these steps"},
    {"activation-bytes", CLI_BYTES, FIELD(activation_bytes), 1, 1e9, .fallback = "64K",
     .help = "that a stage of these pipelines passes on with each; K, M, G are 1024s"},
    {"kernels", CLI_FLAG, FIELD(kernels),
     .help = "with --device gpu: bytes per second of the reduce, cast and AdamW kernels, beside a copy inside the GPU"},
    {"tune", CLI_TEXT, FIELD(tune),
     .help = "time every algorithm and write the fastest to this tuning file; --tune=X, as mpirun of Open MPI has a "
             "--tune too"},
    {"algorithms", CLI_FLAG, FIELD(algorithms), .help = "print the table that algorithms are chosen from"},
    {"nodes", CLI_COUNT, FIELD(nodes), 2, 1e6, .fallback = "those of the job",
     .help =
         "with --algorithms: the table as it would be on so many nodes of --ranks-per-node, and what each would cost"},
    {"alpha", CLI_NUMBER, FIELD(alpha), 0.01, 1e6, .fallback = "as measured between the job's nodes, else 5",
     .help = "there: microseconds that a short message takes from node to node"},
    {"beta", CLI_NUMBER, FIELD(beta), 1e-3, 1e6, .fallback = "as measured, else 1.2",
     .help = "there: GB per second of a node's link"},
    {"json", CLI_TEXT, FIELD(json), .help = "write the results to this file as JSON"},
    {"csv", CLI_TEXT, FIELD(csv), .help = "write the results to this file, comma-separated"},
    {"plot", CLI_TEXT, FIELD(plot), .help = "draw time, bandwidth and ratio against size into this SVG file (gnuplot)"},
    {"progress", CLI_CHOICE, FIELD(progress), .choices = "auto|on|off", .fallback = "auto",
     .help = "a bar on stderr; auto: if that is a terminal, which it is not under mpirun"},
    {"help", CLI_FLAG, FIELD(help), .help = "this text"},
    {"version", CLI_FLAG, FIELD(version), .help = "the version of libfsdp"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const bench_options defaults = {
    .collectives      = ALL_THREE,
    .dtype            = FSDP_F32,
    .warmup           = 3,
    .repeat           = 5,
    .units            = 16,
    .unit_params      = 1 << 20,
    .strategy         = FSDP_FULL_SHARD,
    .state_bytes      = (size_t)1 << 30,
    .activation_bytes = (size_t)64 << 10,
};

/* The option that asks for a run which has no use for GPU memory; NULL: none does. */
static const char *only_on_host(const bench_options *o)
{
    return o->overlap      ? "overlap"
           : o->floor      ? "floor"
           : o->async      ? "async"
           : o->lanes      ? "lanes"
           : o->record     ? "record"
           : o->drop_in    ? "drop-in"
           : o->step       ? "step"
           : o->checkpoint ? "checkpoint"
           : o->pipeline   ? "pipeline"
           : o->tune       ? "tune"
           : o->algorithms ? "algorithms"
                           : NULL;
}

/* The option that asks for a run of the first three collectives alone; NULL: none does. */
static const char *only_three(const bench_options *o)
{
    return o->overlap ? "overlap" : o->floor ? "floor" : o->async ? "async" : o->tune ? "tune" : NULL;
}

/* Of the runs that judge the library between nodes. */
static void check_network(const bench_options *o, char *message)
{
    if (o->floor && (o->dtype != FSDP_F32 || o->op != FSDP_SUM)) {
        CLI_SAY(message, "--floor times sums of f32; leave out --dtype and --op");
    } else if (o->floor && (o->in_place || o->shared)) {
        CLI_SAY(message, "--floor works out of place, with a result for each rank; leave out --in-place and --result");
    } else if (o->async && o->thread_level) {
        CLI_SAY(message, "--async measures the progress thread, which needs --thread-level multiple; use that");
    } else if (o->lanes &&
               (o->thread_level || (o->collectives != ALL_THREE && o->collectives != 1 << BENCH_ALLGATHER))) {
        CLI_SAY(message, "--lanes times allgathers by the progress thread; leave out --thread-level, and other "
                         "collectives");
    } else if (only_three(o) && o->collectives >> BENCH_BROADCAST) {
        CLI_SAY(message, "--%s takes --collective allgather, reduce_scatter and allreduce only; leave out the others",
                only_three(o));
    }
}

static int count_modes(const bench_options *o)
{
    return !!o->overlap + !!o->floor + !!o->async + !!o->lanes + !!o->record + !!o->drop_in + !!o->shards + !!o->step +
           !!o->checkpoint + !!o->pipeline + !!o->kernels + !!o->tune + !!o->algorithms;
}

int bench_options_sweep(const bench_options *options)
{
    return count_modes(options) == 0;
}

/* What no single option can know. */
static void check_together(const bench_options *o, char *message)
{
    const int modes = count_modes(o);

    if (!(o->algorithms && o->nodes) && (o->nodes || o->alpha > 0 || o->beta > 0)) {
        CLI_SAY(message, "--%s is for --algorithms on nodes that are made up; give --algorithms and --nodes with it",
                o->nodes       ? "nodes"
                : o->alpha > 0 ? "alpha"
                               : "beta");
    } else if (o->begin > o->end) {
        CLI_SAY(message, "--begin is %zu, above --end %zu; use at most as much", o->begin, o->end);
    } else if (modes > 1) {
        CLI_SAY(message,
                "--overlap, --floor, --async, --lanes, --record, --drop-in, --shards, --step, "
                "--checkpoint, --pipeline, --kernels, --tune and --algorithms are runs of their own; use one of them");
    } else if (modes && o->plot) {
        CLI_SAY(message, "--plot is '%.60s', but only the plain sweep is drawn; leave out the other one", o->plot);
    } else if (o->drop_in && (o->shared || o->thread_level)) {
        CLI_SAY(message, "--drop-in times MPI's calls at thread level single; leave out --result and --thread-level");
    } else if (o->osu && !o->drop_in) {
        CLI_SAY(message, "--osu is for --drop-in; give that too, or leave it out");
    } else if (o->shared && o->memory == BENCH_MEMORY_USER) {
        CLI_SAY(message, "--result is shared, which --memory user cannot be; use --memory symmetric");
    } else if (o->device == BENCH_DEVICE_GPU && only_on_host(o)) {
        CLI_SAY(message, "--device is gpu, but --%s works on host memory; leave out one of them", only_on_host(o));
    } else if (o->device == BENCH_DEVICE_GPU && o->memory_rate) {
        CLI_SAY(message, "--memory-rate is of the host's memory, and --device is gpu; leave out one of them");
    } else if (o->device == BENCH_DEVICE_GPU && o->shared) {
        CLI_SAY(message, "--result is shared, which memory of GPUs cannot be; use --result private, or --device host");
    } else if (o->device != BENCH_DEVICE_GPU && o->kernels) {
        CLI_SAY(message, "--kernels times kernels of a GPU; use --device gpu with it");
    } else if (o->step && o->dtype != FSDP_F32 && o->dtype != FSDP_BF16 && o->dtype != FSDP_F16) {
        CLI_SAY(message, "--dtype is %s, which no model has; use f32, bf16 or f16", fsdp_dtype_name(o->dtype));
    } else {
        check_network(o, message);
    }
}

/* Below 64 KiB there is nothing to hide: waiting for a GPU, or for a sleeping core, takes longer. */
static size_t default_begin(const bench_options *o)
{
    return o->kernels || o->lanes ? (size_t)64 << 20 : o->async ? (size_t)1 << 20 : o->overlap ? (size_t)64 << 10 : 8;
}

/* The sizes that a run has where none are given. */
static void choose_sizes(bench_options *o)
{
    o->begin  = o->begin ? o->begin : default_begin(o);
    o->end    = o->end ? o->end : o->async || o->lanes ? (size_t)64 << 20 : (size_t)256 << 20;
    o->memory = o->drop_in ? BENCH_MEMORY_USER : o->memory;
    o->factor = o->factor ? o->factor : o->async ? 8 : 4;
}

void bench_options_parse(int argc, char **argv, bench_options *options, char *message)
{
    *options         = defaults;
    options->program = argv[0];
    cli_options_read(argc, argv, rows, N_ROWS, options, message);
    choose_sizes(options);
    if (!message[0]) {
        check_together(options, message);
    }
}

static const char usage[] =
    "usage: mpirun -n RANKS fsdp-bench [OPTION]...\n"
    "\n"
    "Times the library's collectives and MPI's in alternation, with the columns and definitions of nccl-tests, beside "
    "the\n"
    "bound that memory and links set.\n"
    "\n"
    "  mpirun -n 8 fsdp-bench               allgather, reduce_scatter and allreduce, 8 bytes to 256 MiB\n"
    "  mpirun -n 8 fsdp-bench --overlap     how much of it compute hides\n"
    "  mpirun -n 2 fsdp-bench --floor       between two nodes: how near to what messages allow\n"
    "  mpirun -n 8 fsdp-bench --async       what the progress thread reaches alone\n"
    "  mpirun -n 8 fsdp-bench --lanes       what a short operation takes beside long ones\n"
    "  mpirun -n 2 fsdp-bench --record      what remembering operations costs\n"
    "  mpirun -n 2 fsdp-bench --drop-in libfsdp_mpi.so   plain MPI, and MPI with the drop-in\n"
    "  mpirun -n 8 fsdp-bench --step        training steps: what gathering ahead hides behind compute\n"
    "  mpirun -n 8 fsdp-bench --device gpu  the same collectives on GPU memory\n"
    "  mpirun -n 8 fsdp-bench --tune=FILE   a table of algorithms for this machine, for FSDP_TUNING_FILE\n"
    "  fsdp-bench --algorithms --nodes 4096 --ranks-per-node 8   what would be chosen there, and why\n"
    "\n"
    "options\n";

static const char notes[] = "\n"
                            "exit status\n"
                            "  0: done; 1: failed, or a result is wrong; 2: a wrong option, or a file that cannot be "
                            "written. Rank 0 says why.\n";

int bench_options_answer(const bench_options *options, int rank)
{
    if (rank == 0 && options->help) {
        fputs(usage, stdout);
        cli_options_print(rows, N_ROWS);
        fputs(notes, stdout);
    } else if (rank == 0 && options->version) {
        printf("fsdp-bench of libfsdp %s\n", fsdp_version());
    }
    return options->help || options->version;
}
