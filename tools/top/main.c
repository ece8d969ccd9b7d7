/*
 * fsdp-top: what each rank of a running job does, since when, and how much of its time it waits, from the records of its ranks
 * (lib/record/layout.h).
 *
 *     fsdp-top                                  the newest job on this host
 *     fsdp-top --pid 4711                       the job of that process, as far as it is on this host
 *     fsdp-top --hosts node1,node2              on these hosts, which ssh reaches
 *     fsdp-top --slurm 42                       on all nodes of that job
 *     fsdp-top --job 'flux exec'                the same by another launcher
 *
 * Without MPI and without a daemon: with --slurm, --job and --hosts each host runs `fsdp-top --raw` once for each picture. No rank is
 * stopped or waited for, so that it works while ranks hang or are stopped.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fsdp/version.h"
#include "tools/common/options.h"
#include "tools/top/table.h"

enum { TOP_USAGE = 2, TOP_FAILED = 3 };

typedef struct top_options {
    size_t      pid;
    const char *slurm, *job, *hosts, *rsh, *remote;
    double      interval, after;
    int         once, raw;
} top_options;

static void read_pid(const cli_option *option, const char *text, void *field, char *message)
{
    char      *end;
    const long pid = strtol(text, &end, 10);

    if (*end != '\0' || text[0] < '0' || text[0] > '9' || pid <= 0) {
        CLI_SAY(message, "--%s is '%.60s'; give the number of a process", option->name, text);
        return;
    }
    *(size_t *)field = (size_t)pid;
}

#define FIELD(name) .field = offsetof(top_options, name)

static const cli_option rows[] = {
    {"pid", CLI_CUSTOM, FIELD(pid), .read = read_pid, .fallback = "the newest job",
     .help = "the job that this process belongs to"},
    {"slurm", CLI_TEXT, FIELD(slurm), .help = "the job of this number, on all its nodes"},
    {"job", CLI_TEXT, FIELD(job), .help = "a launcher that runs a command once on each host of the job"},
    {"hosts", CLI_TEXT, FIELD(hosts), .fallback = "this one", .help = "a list of hosts, as node1,node2"},
    {"rsh", CLI_TEXT, FIELD(rsh), .fallback = "ssh", .help = "runs a command on a host of the list"},
    {"remote", CLI_TEXT, FIELD(remote), .fallback = "this program", .help = "fsdp-top on other hosts"},
    {"interval", CLI_NUMBER, FIELD(interval), 0.1, 3600, .fallback = "2", .help = "seconds between two pictures"},
    {"after", CLI_NUMBER, FIELD(after), 0, 1e9, .fallback = "5",
     .help = "seconds that a rank may wait before that is worth a word"},
    {"once", CLI_FLAG, FIELD(once), .help = "one picture, of all ranks"},
    {"raw", CLI_FLAG, FIELD(raw),
     .help = "print the records of this host's processes, for fsdp-top and fsdp-why elsewhere"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static const char usage[] =
    "usage: fsdp-top [options]\n"
    "\n"
    "Shows each rank of a running job: its last operation, since when it does what it does, and the share of its\n"
    "time that it waits. Ctrl-C ends it.\n"
    "\n";
static const char statuses[] =
    "\nExit status: 0; 2 wrong usage; 3 no process with records was found, or output could not be written.\n";

static int fail(int status, const char *why)
{
    (void)fprintf(stderr, "fsdp-top: %s\n", why);
    return status;
}

static void read_records(const top_options *o, records *all)
{
    if (o->slurm != NULL) {
        if (records_read_slurm(all, o->slurm, o->remote) < 0) {
            records_note(all, "--slurm is '%.100s', which is no job's number", o->slurm);
        }
    } else if (o->job != NULL) {
        (void)records_read_launcher(all, o->job, o->remote);
    } else if (o->hosts != NULL) {
        if (records_read_hosts(all, o->hosts, o->rsh, o->remote) < 0) {
            records_note(all, "--hosts is '%.100s', which is no list of hosts", o->hosts);
        }
    } else {
        (void)records_read_processes(all, 0);
    }
}

/* As many rows as the terminal has room for; 0: it is none. */
static size_t room_for_rows(const top_options *o)
{
    enum { OTHER_LINES = 8 };
    struct winsize size;

    if (o->once || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row <= OTHER_LINES + 1) {
        return 0;
    }
    return (size_t)size.ws_row - OTHER_LINES;
}

/* One picture. */
static int show(const top_options *o, top_before *before)
{
    records     all = {0};
    verdict_job job;
    int         result = 0;

    read_records(o, &all);
    if (verdict_pick_job(&all, (long)o->pid, &job)) {
        job.is_partial = o->slurm == NULL && o->job == NULL && o->hosts == NULL;
        if (!o->once && isatty(STDOUT_FILENO)) {
            (void)fputs("\033[H\033[J", stdout);
        }
        top_print(&job, &all, o->after, room_for_rows(o), before, stdout);
        verdict_release_job(&job);
    } else {
        for (size_t i = 0; i < all.n_notes; i++) {
            (void)fprintf(stderr, "note: %s\n", all.notes[i]);
        }
        result = fail(TOP_FAILED, o->pid > 0 ? "that process has no context of libfsdp open, or is another user's"
                                             : "no process with an open context of libfsdp was found; another user's "
                                               "are not seen, nor those with FSDP_RECORD=0");
    }
    records_release(&all);
    return result;
}

/* When a process ends, Slurm cuts what it has not read yet into pieces that need not end where a line does. */
static void wait_until_it_is_read(void)
{
    enum { MOST_MS = 2000 };
    struct stat out;
    int         left;

    if (fflush(stdout) != 0 || fstat(STDOUT_FILENO, &out) != 0 || !S_ISFIFO(out.st_mode)) {
        return;
    }
    for (int ms = 0; ms < MOST_MS && ioctl(STDOUT_FILENO, FIONREAD, &left) == 0 && left > 0; ms++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static int show_raw(void)
{
    records all = {0};

    (void)records_read_processes(&all, 0);
    records_write_lines(&all, stdout);
    wait_until_it_is_read();
    records_release(&all);
    return 0;
}

static int run(const top_options *o)
{
    top_before            before = {0};
    const struct timespec nap    = {.tv_sec  = (time_t)o->interval,
                                    .tv_nsec = (long)((o->interval - (double)(time_t)o->interval) * 1e9)};
    int                   result;

    if (o->raw) {
        return show_raw();
    }
    do {
        result = show(o, &before);
        if (fflush(stdout) != 0) {
            break;
        }
    } while (!o->once && result == 0 && nanosleep(&nap, NULL) == 0);
    top_forget(&before);
    return result;
}

int main(int argc, char **argv)
{
    top_options o = {.rsh = "ssh", .interval = 2, .after = 5};
    char        message[CLI_MESSAGE_BYTES];
    int         result;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(usage, stdout);
            cli_options_print(rows, N_ROWS);
            (void)fputs(statuses, stdout);
            return fflush(stdout) == 0 ? 0 : TOP_FAILED;
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("fsdp-top of libfsdp %s\n", fsdp_version());
            return fflush(stdout) == 0 ? 0 : TOP_FAILED;
        }
    }
    cli_options_read(argc, argv, rows, N_ROWS, &o, message);
    if (message[0] != '\0') {
        return fail(TOP_USAGE, message);
    }
    result = run(&o);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        return fail(TOP_FAILED, "standard output cannot be written");
    }
    return result;
}
