/*
 * fsdp-why: which rank of a job stopped first, and where it is, from the records of its ranks (lib/record/layout.h).
 *
 *     fsdp-why records                          of files that FSDP_RECORD_DIR=records has brought
 *     fsdp-why 4711                             of the job that this process belongs to, as far as it is on this host
 *     fsdp-why node1,node2                      of the newest job on these hosts, which ssh reaches
 *     fsdp-why --slurm 42                       on all nodes of that job
 *     fsdp-why --job 'flux exec'                the same by another launcher
 *
 * Without MPI: for a login node as well as for a compute node. It stops nobody, and leaves nothing behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fsdp/version.h"
#include "tools/common/options.h"
#include "tools/records/verdict.h"
#include "tools/why/json.h"

enum { WHY_USAGE = 2, WHY_FAILED = 3 };

typedef struct why_options {
    const char *what, *slurm, *job, *rsh, *remote, *save;
    double      after;
    int         json;
} why_options;

#define FIELD(name) .field = offsetof(why_options, name)

static const cli_option rows[] = {
    {"slurm", CLI_TEXT, FIELD(slurm), .help = "the job of this number, on all its nodes"},
    {"job", CLI_TEXT, FIELD(job), .help = "a launcher that runs a command once on each host of the job"},
    {"rsh", CLI_TEXT, FIELD(rsh), .fallback = "ssh", .help = "runs a command on a host of a list"},
    {"remote", CLI_TEXT, FIELD(remote), .fallback = "the one beside this program", .help = "fsdp-top on other hosts"},
    {"after", CLI_NUMBER, FIELD(after), 0, 1e9, .fallback = "5",
     .help = "seconds that a rank may wait before that is worth a word"},
    {"save", CLI_TEXT, FIELD(save), .help = "also write what has been read into this folder, a file per rank"},
    {"json", CLI_FLAG, FIELD(json), .help = "print JSON"},
};
static const cli_option with_what[] = {{"FOLDER, PROCESS or HOSTS", CLI_ARGUMENT, FIELD(what)}};
#define N_ROWS (sizeof rows / sizeof *rows)

static const char usage[] =
    "usage: fsdp-why FOLDER | PROCESS | HOST,HOST... [options]\n"
    "       fsdp-why --slurm JOB | --job LAUNCHER [options]\n"
    "\n"
    "Says which rank stopped first, where it is, and who waits for it: from record files in a folder\n"
    "(FSDP_RECORD_DIR), from the memory of the job of a process on this host, or of jobs on other hosts.\n"
    "\n";
static const char statuses[] =
    "\n"
    "Exit status: 0 nothing is wrong; 2 wrong usage; 3 there are no records, or they cannot be read; of a rank:\n"
    "10 it is in its own code while others wait; 11 stopped; 12 gone; 13 killed for want of memory; 14 died of a\n"
    "signal; 15 a whole node is gone; 16 ranks made different calls; 17 one is always last; 18 all have come and\n"
    "nothing moves; 19 whoever is waited for has left no record; 20 ended from outside, or by an error of MPI.\n";

static int fail(int status, const char *what, const char *why)
{
    (void)fprintf(stderr, "fsdp-why: %s: %s\n", what, why);
    return status;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10;
}

static int read_folder(records *all, const char *folder)
{
    const long files = records_read_folder(all, folder);

    if (files < 0) {
        return fail(WHY_FAILED, folder, strerror(errno));
    }
    return files > 0 ? 0 : fail(WHY_FAILED, folder, "there are no records in it; was FSDP_RECORD_DIR set for the job?");
}

/* Those of its job are in other processes too. */
static int read_process(records *all, const char *what, long pid)
{
    const long mine = records_read_processes(all, pid);

    if (mine < 0) {
        return fail(WHY_FAILED, what, errno == ENOENT ? "there is no such process" : strerror(errno));
    }
    if (mine == 0) {
        return fail(WHY_FAILED, what,
                    "this process has no context of libfsdp open, or records nothing (FSDP_RECORD=0)");
    }
    records_release(all);
    (void)records_read_processes(all, 0);
    return 0;
}

/* What the command line names. `pid`: a process of the job; 0: the newest. `is_partial`: other hosts were not asked. */
static int read_records(const why_options *o, records *all, long *pid, bool *is_partial)
{
    struct stat about;

    if (o->slurm != NULL) {
        return records_read_slurm(all, o->slurm, o->remote) >= 0
                   ? 0
                   : fail(WHY_USAGE, o->slurm, "this is no job's number; give --slurm one, as 42 or 42_3");
    }
    if (o->job != NULL) {
        (void)records_read_launcher(all, o->job, o->remote);
        return 0;
    }
    if (stat(o->what, &about) == 0 && S_ISDIR(about.st_mode)) {
        return read_folder(all, o->what);
    }
    if (is_number(o->what)) {
        *pid        = strtol(o->what, NULL, 10);
        *is_partial = true;
        return read_process(all, o->what, *pid);
    }
    if (strchr(o->what, '/') != NULL) {
        return fail(WHY_FAILED, o->what, "there is no such folder");
    }
    if (records_read_hosts(all, o->what, o->rsh, o->remote) < 0) {
        return fail(WHY_USAGE, o->what, "this is neither a folder, a process, nor a list of hosts as node1,node2");
    }
    return 0;
}

static void print_notes(const records *all, FILE *file)
{
    for (size_t i = 0; i < all->n_notes; i++) {
        (void)fprintf(file, "note: %s\n", all->notes[i]);
    }
    if (all->more_notes > 0) {
        (void)fprintf(file, "note: and %zu more\n", all->more_notes);
    }
}

/* In lines of a terminal's width. */
static void print_wrapped(const char *text)
{
    enum { WIDTH = 100 };
    size_t column = 0;

    while (*text != '\0') {
        const size_t word = strcspn(text, " ");
        if (column > 0 && column + 1 + word > WIDTH) {
            (void)putchar('\n');
            column = 0;
        } else if (column > 0) {
            (void)putchar(' ');
            column++;
        }
        (void)printf("%.*s", (int)word, text);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    (void)putchar('\n');
}

/* Which hosts are known to be all is not: where nothing is missing, they are. */
static int judge(const why_options *o, records *all, long pid, bool is_partial)
{
    verdict_job job;
    verdict     found;

    if (!verdict_pick_job(all, pid, &job)) {
        print_notes(all, stderr);
        return fail(WHY_FAILED,
                    o->what != NULL    ? o->what
                    : o->slurm != NULL ? o->slurm
                                       : o->job,
                    "there is no record that can be read");
    }
    job.is_partial = is_partial && job.all[0]->head.boot[0] != '\0';
    verdict_find(&job, o->after, &found);
    if (o->json) {
        why_print_json(&found, &job, all, stdout);
    } else {
        print_wrapped(found.text);
        if (found.advice[0] != '\0') {
            print_wrapped(found.advice);
        }
        print_notes(all, stdout);
    }
    verdict_release_job(&job);
    return (int)found.kind;
}

static int run(const why_options *o)
{
    records all        = {0};
    long    pid        = 0;
    bool    is_partial = false;
    int     result     = read_records(o, &all, &pid, &is_partial);

    if (result == 0 && o->save != NULL) {
        const int why = records_save(&all, o->save);
        result        = why == 0 ? 0 : fail(WHY_FAILED, o->save, strerror(why));
    }
    if (result == 0) {
        result = judge(o, &all, pid, is_partial);
    }
    records_release(&all);
    return result;
}

static int flush(int result)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        return fail(WHY_FAILED, "standard output", "it cannot be written");
    }
    return result;
}

/* --slurm and --job take the place of the argument. */
static bool names_job(int argc, char **argv)
{
    bool names = false;

    for (int i = 1; i < argc; i++) {
        names = names || strncmp(argv[i], "--job", 5) == 0 || strncmp(argv[i], "--slurm", 7) == 0;
    }
    return names;
}

int main(int argc, char **argv)
{
    why_options o = {.rsh = "ssh", .after = 5};
    cli_option  all[N_ROWS + 1];
    char        message[CLI_MESSAGE_BYTES];

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(usage, stdout);
            cli_options_print(rows, N_ROWS);
            (void)fputs(statuses, stdout);
            return flush(0);
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("fsdp-why of libfsdp %s\n", fsdp_version());
            return flush(0);
        }
    }
    memcpy(all, rows, sizeof rows);
    memcpy(all + N_ROWS, with_what, sizeof with_what);
    cli_options_read(argc, argv, all, N_ROWS + !names_job(argc, argv), &o, message);
    if (message[0] != '\0') {
        return fail(WHY_USAGE, "command line", message);
    }
    return flush(run(&o));
}
