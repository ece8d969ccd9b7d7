/*
 * fsdp-run: starts a job, and when it ends badly starts it again from its last checkpoint, on the nodes that are left.
 *
 *     fsdp-run --checkpoint run -- mpirun -n 8 ./program --checkpoint run
 *     fsdp-run --checkpoint run --spares 1 --min-nodes 4 -- srun --mpi=pmix --ntasks-per-node=8 ./program --checkpoint run
 *
 * Without MPI. Where things are: nodes.c which nodes there are, command.c the launcher's command line, session.c one attempt
 * after the other, choose.c on which nodes, attempt.c one of them, keeper.c the process above the launcher, blame.c what went
 * wrong, decide.c what follows, fence.c the folder, ask.c other hosts, processes.c this one.
 */
#include <stdlib.h>
#include <string.h>

#include "fsdp/version.h"
#include "tools/common/options.h"
#include "tools/run/ask.h"
#include "tools/run/command.h"
#include "tools/run/session.h"

#define FIELD(name) .field = offsetof(run_options, name)

static const cli_option rows[] = {
    {"checkpoint", CLI_TEXT, FIELD(checkpoint), .help = "the folder that the program saves in and resumes from"},
    {"max-restarts", CLI_COUNT, FIELD(max_restarts), 0, 1e6, .fallback = "10",
     .help = "how often the command is started again"},
    {"spares", CLI_COUNT, FIELD(spares), 0, 1e5, .fallback = "0",
     .help = "nodes held back, for those that are left out"},
    {"min-nodes", CLI_COUNT, FIELD(min_nodes), 1, 1e5, .fallback = "1", .help = "with fewer nodes the run ends"},
    {"hostfile", CLI_TEXT, FIELD(hostfile), .fallback = "the batch system's nodes, or this machine",
     .help = "a file of nodes, a line each: NAME or NAME slots=N"},
    {"ranks-per-node", CLI_COUNT, FIELD(ranks_per_node), 1, 1e6, .fallback = "what -n says, or slots",
     .help = "ranks on each node"},
    {"launcher", CLI_CHOICE, FIELD(launcher), .choices = RUN_LAUNCHER_CHOICES, .fallback = "auto",
     .help = "what the first word behind -- is"},
    {"rsh", CLI_TEXT, FIELD(rsh), .fallback = "what the launcher is told to use; srun in a job of Slurm; or ssh",
     .help = "runs a command on a node, to see whether it answers and to end what is left there"},
    {"grace", CLI_NUMBER, FIELD(grace), 0.1, 86400, .fallback = "30",
     .help = "seconds from SIGTERM to SIGKILL, and for a launcher to end when its ranks have given up"},
    {"patience", CLI_NUMBER, FIELD(patience), 0.1, 86400, .fallback = "15",
     .help = "seconds that a node has to answer"},
    {"records", CLI_TEXT, FIELD(records),
     .fallback = "FSDP_RECORD_DIR, or the folder `records` in that of --checkpoint",
     .help     = "where each attempt's records go, for fsdp-why"},
    {"sweep", CLI_TEXT, FIELD(sweep), .help = "used by fsdp-run on other hosts: ends the processes of a run there"},
    {"job", CLI_COUNT, FIELD(job), 0, 65535, .help = "likewise: the number of files that Open MPI has left"},
    {"look", CLI_TEXT, FIELD(look), .help = "likewise: status 42 if there is no such file"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static const char usage[] =
    "usage: fsdp-run [options] -- mpirun|mpiexec|srun [its options] PROGRAM [arguments]\n"
    "\n"
    "Starts the command on the nodes of the job, watches it, and when it ends badly finds out why, leaves out the "
    "node\n"
    "that is to blame, and starts it again: with spare nodes while there are some, then on fewer.\n"
    "\n";
static const char statuses[] =
    "\n"
    "The last line says why it has ended, and the exit status is that of: success 0; interrupted 128 and the signal;\n"
    "time-limit 75; no-nodes 69; app-error 70; no-progress 71. 2: wrong usage; 3: it cannot begin, or go on.\n";

static int fail(int status, const char *what, const char *why)
{
    (void)fprintf(stderr, "fsdp-run: %s: %s\n", what, why);
    return status;
}

static int find_end(int argc, char **argv)
{
    int end = 1;

    while (end < argc && strcmp(argv[end], "--") != 0) {
        end++;
    }
    return end;
}

int main(int argc, char **argv)
{
    run_options o   = {.max_restarts = 10, .min_nodes = 1, .grace = 30, .patience = 15};
    const int   end = find_end(argc, argv);
    char        message[CLI_MESSAGE_BYTES];

    for (int i = 1; i < end; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(usage, stdout);
            cli_options_print(rows, N_ROWS);
            (void)fputs(statuses, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("fsdp-run of libfsdp %s\n", fsdp_version());
            return EXIT_SUCCESS;
        }
    }
    cli_options_read(end, argv, rows, N_ROWS, &o, message);
    if (message[0] != '\0') {
        return fail(RUN_USAGE, "command line", message);
    }
    if (o.sweep != NULL) {
        return run_answer(o.sweep, (unsigned)o.job, o.look);
    }
    return run_session(&o, &argv[end < argc ? end + 1 : argc]);
}
