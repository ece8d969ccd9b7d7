#include "tools/topo/base/options.h"

#include <stdio.h>

#include <fsdp/version.h>

#include "tools/common/options.h"

#define FIELD(name) offsetof(topo_options, name)

static const cli_option rows[] = {
    {"input", CLI_TEXT, FIELD(input), .fallback = "this machine, or what FSDP_TOPOLOGY names",
     .help = "a recorded machine: hwloc's XML, version 2, as `lstopo machine.xml` writes it"},
    {"ranks", CLI_COUNT, FIELD(ranks), 1, TOPO_MOST_RANKS, .help = "plan for so many ranks on one node instead"},
    {"masks", CLI_TEXT, FIELD(masks), .fallback = "all hardware threads",
     .help = "what the launcher would leave to each of --ranks: lists of hardware threads with / between them, as "
             "1-7/9-15; one list is for all"},
    {"reserve-first-core", CLI_FLAG, FIELD(reserve_first_core),
     .help = "plan without the first core of each last-level cache, which some machines keep for the system"},
    {"reserve", CLI_TEXT, FIELD(reserve), .fallback = "nothing",
     .help = "plan without these hardware threads, as 0,64, which are kept for the system"},
    {"why", CLI_FLAG, FIELD(why), .help = "give the reasons of each rank, not once for all ranks with like ones"},
    {"check", CLI_FLAG, FIELD(check), .help = "under mpirun: exit status 3 if a rank is not where the plan has it"},
    {"json", CLI_FLAG, FIELD(json), .help = "print JSON"},
    {"svg", CLI_TEXT, FIELD(svg), .help = "draw the nodes and the ranks on them into this file too"},
    {"launch", CLI_FLAG, FIELD(launch),
     .help =
         "print the lines of Open MPI, MPICH, Slurm, Flux and PALS that give the plan, and their wrapper; --ranks is "
         "one per GPU, or NUMA node, or as many as run under mpirun, if not given"},
    {"wrapper", CLI_TEXT, FIELD(wrapper), .fallback = "printed as a here-document",
     .help = "with --launch: write the wrapper to this file"},
    {"watch", CLI_FLAG, FIELD(watch),
     .help = "GPU memory, use, clock, power and temperature, host memory and use of cores, again and again"},
    {"interval", CLI_NUMBER, FIELD(interval), 0.05, 86400, .fallback = "1",
     .help = "with --watch: seconds from one look to the next"},
    {"count", CLI_COUNT, FIELD(count), 1, 1e9, .fallback = "until SIGINT",
     .help = "with --watch: end after so many looks"},
    {"settings", CLI_FLAG, FIELD(settings), .help = "print the library's settings in force"},
    {"help", CLI_FLAG, FIELD(help), .help = "this text"},
    {"version", CLI_FLAG, FIELD(version), .help = "the version of libfsdp"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const topo_options defaults = {.interval = 1};

/* The first of these options that is given and makes no sense without --ranks. */
static const char *belongs_to_ranks(const topo_options *o)
{
    return o->masks ? "masks" : o->reserve ? "reserve" : o->reserve_first_core ? "reserve-first-core" : NULL;
}

/* What asks for one way of showing, with another. */
static void check_modes(const topo_options *o, char *message)
{
    const int   modes = o->launch + o->watch + o->settings;
    const char *live  = o->watch ? "--watch" : o->settings ? "--settings" : "--check";

    if (modes > 1) {
        CLI_SAY(message, "--launch, --watch and --settings are runs of their own; use one of them");
    } else if (modes && (o->json || o->svg)) {
        CLI_SAY(message, "--json and --svg describe nodes, not --launch, --watch or --settings; use them without");
    } else if (modes && (o->why || o->check)) {
        CLI_SAY(message, "--%s is about the ranks of a node, not --launch, --watch or --settings; use it without",
                o->why ? "why" : "check");
    } else if ((o->watch || o->settings || o->check) && (o->input || o->ranks)) {
        CLI_SAY(message, "%s shows what runs here, not a plan; leave out --%s", live, o->input ? "input" : "ranks");
    }
}

/* What no single option can know. */
static void check_together(const topo_options *o, char *message)
{
    check_modes(o, message);
    if (message[0]) {
        return;
    }
    if (belongs_to_ranks(o) && !o->ranks) {
        CLI_SAY(message, "--%s is for planned ranks; add --ranks", belongs_to_ranks(o));
    } else if (o->masks && (o->reserve_first_core || o->reserve)) {
        CLI_SAY(message, "--%s and --masks both say what ranks may use; use one of them",
                o->reserve ? "reserve" : "reserve-first-core");
    } else if (o->wrapper && !o->launch) {
        CLI_SAY(message, "--wrapper is '%.60s', which belongs to --launch; add that", o->wrapper);
    } else if ((o->count || o->interval < defaults.interval || o->interval > defaults.interval) && !o->watch) {
        CLI_SAY(message, "--%s belongs to --watch; add that", o->count ? "count" : "interval");
    }
}

void topo_options_parse(int argc, char **argv, topo_options *options, char *message)
{
    *options = defaults;
    cli_options_read(argc, argv, rows, N_ROWS, options, message);
    if (!message[0]) {
        check_together(options, message);
    }
}

static const char usage[] =
    "usage: fsdp-topo [OPTION]...\n"
    "       mpirun -n RANKS fsdp-topo [OPTION]...\n"
    "\n"
    "Shows a node and who runs where on it: packages, NUMA nodes, caches, cores, GPUs and their links, network cards.\n"
    "\n"
    "  fsdp-topo                              this node, and which sources of knowledge there are\n"
    "  mpirun -n 8 fsdp-topo                  where each rank is once fsdp_init() has bound it, what is wrong with "
    "that,\n"
    "                                         and what the plan is where it differs\n"
    "  fsdp-topo --input node.xml --ranks 8   the plan for 8 ranks on another machine\n"
    "  fsdp-topo --launch --ranks 8           the lines of mpirun, srun and others that give this plan\n"
    "\n"
    "options\n";

static const char notes[] =
    "\n"
    "Hardware threads are named by the operating system's numbers, GPUs by PCI address; the number before an address\n"
    "counts the node's GPUs in the order of their addresses. `device` is the number that HIP gives in that rank.\n"
    "A recorded machine can neither be watched nor bound to; a job is planned for it.\n"
    "\n"
    "files\n"
    "  /proc and /sys of Linux; librocm_smi64 and the HIP runtime where they are installed. What is missing is listed\n"
    "  under `sources`, and what it would have said is unknown. Nothing of this is an error.\n"
    "\n"
    "environment\n"
    "  FSDP_TOPOLOGY names a recorded machine that is taken for this one; --input comes before it. FSDP_BIND decides\n"
    "  what fsdp_init() binds under mpirun. --settings lists all variables.\n"
    "\n"
    "exit status\n"
    "  0: done, also where problems are marked; 1: failed; 2: a wrong option, input that cannot be read, or a file "
    "that\n"
    "  cannot be written; 3: --check, and a rank is not where the plan has it. Rank 0 says why.\n";

int topo_options_answer(const topo_options *options, int rank)
{
    if (rank == 0 && options->help) {
        fputs(usage, stdout);
        cli_options_print(rows, N_ROWS);
        fputs(notes, stdout);
    } else if (rank == 0 && options->version) {
        printf("fsdp-topo of libfsdp %s\n", fsdp_version());
    }
    return options->help || options->version;
}
