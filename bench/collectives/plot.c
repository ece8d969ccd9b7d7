#include "bench/collectives/plot.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/collectives/table.h"
#include "bench/job/header.h"

#define US 1e6

/* Runs gnuplot with one argument. @return whether it was there and content */
static int run_gnuplot(const char *argument)
{
    char  name[] = "gnuplot", value[300];
    char *argv[] = {name, value, NULL};
    pid_t child;
    int   status;

    (void)snprintf(value, sizeof value, "%s", argument);
    if (posix_spawnp(&child, name, NULL, NULL, argv, environ) != 0) {
        return 0;
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return 0;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Looks along PATH: nothing is started that might say something. */
static int gnuplot_is_there(void)
{
    const char *path = getenv("PATH");
    char        candidate[4096];

    while (path && *path) {
        const size_t length = strcspn(path, ":");

        (void)snprintf(candidate, sizeof candidate, "%.*s/gnuplot", (int)length, path);
        if (access(candidate, X_OK) == 0) {
            return 1;
        }
        path += length + (path[length] == ':');
    }
    return 0;
}

fsdp_status bench_plot_possible(const bench_world *world, const bench_options *options)
{
    const int there = !options->plot || world->rank != 0 || gnuplot_is_there();

    BENCH_TRY(bench_agree(world, there,
                          "--plot needs gnuplot, which is not on the PATH; install it (Debian: "
                          "gnuplot-nox), or use --csv and draw elsewhere"));
    return bench_file_possible(world, "plot", options->plot);
}

/* GB/s; of one rank, which has no bus, bytes over time. */
static double bandwidth(const bench_case *c, double seconds)
{
    return c->ranks > 1 ? bench_busbw(c, seconds) : bench_algbw(c, seconds);
}

/* A logarithmic axis has no place for what is 0, nor for what is below it, which is not known. */
static void write_value(FILE *file, double value)
{
    (void)fprintf(file, " %g", value > 0 ? value : (double)NAN);
}

static void write_times(FILE *file, const bench_case *c, double seconds, double best, double worst)
{
    write_value(file, seconds * US);
    write_value(file, seconds > 0 ? best * US : -1);
    write_value(file, seconds > 0 ? worst * US : -1);
    write_value(file, seconds > 0 ? bandwidth(c, seconds) : -1);
}

static void write_ratios(FILE *file, const bench_against *a)
{
    write_value(file, a->seconds > 0 ? a->ratio : -1);
    write_value(file, a->seconds > 0 ? a->ratio_least : -1);
    write_value(file, a->seconds > 0 ? a->ratio_most : -1);
}

/* Columns: 1 is the size; four each for us, MPI here and the twin: time, best, worst, busbw; two for the bound; three each for
   the ratios of MPI and the twin. */
static void write_row(FILE *file, const bench_job *job, const bench_result *r)
{
    const double bound = bench_table_bound(job, r);

    (void)fprintf(file, "%zu", r->what.bytes);
    write_times(file, &r->what, r->seconds, r->best, r->worst);
    write_times(file, &r->what, r->here.seconds, r->here.best, r->here.worst);
    write_times(file, &r->what, r->other.seconds, r->other.best, r->other.worst);
    write_value(file, bound * US);
    write_value(file, bound > 0 ? bandwidth(&r->what, bound) : -1);
    write_ratios(file, &r->here);
    write_ratios(file, &r->other);
    (void)fputc('\n', file);
}

/* Named blocks of data, one per collective. */
static void write_data(FILE *file, const bench_job *job, const bench_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bench_collective collective = results[i].what.collective;

        if (i == 0 || results[i - 1].what.collective != collective) {
            (void)fprintf(file, "%s$%s << EOD\n", i ? "EOD\n" : "", bench_collective_name(collective));
        }
        write_row(file, job, &results[i]);
    }
    (void)fprintf(file, "EOD\n");
}

/* A name in gnuplot's single quotes. */
static void write_quoted(FILE *file, const char *text)
{
    (void)fputc('\'', file);
    for (; *text; text++) {
        (void)fprintf(file, *text == '\'' ? "''" : "%c", *text);
    }
    (void)fputc('\'', file);
}

/* Two lines: what was run, and where and when. */
static void write_title(FILE *file, const bench_job *job)
{
    const bench_options *o = job->options;
    const bench_host    *h = &job->host;
    char                 text[600];

    (void)snprintf(text, sizeof text, "%d ranks on %d node%s, %s, %s memory%s: libfsdp %s and %s", job->world->size,
                   job->limits.nodes, job->limits.nodes > 1 ? "s" : "", fsdp_dtype_name(o->dtype),
                   o->memory == BENCH_MEMORY_USER ? "plain" : "symmetric", job->gpu ? " of GPUs" : "", fsdp_version(),
                   h->mpi);
    write_quoted(file, text);
    (void)snprintf(text, sizeof text, "%s, %d cores, %s; %s; medians of %zu blocks, bars from the best to the worst",
                   h->name, h->cores, h->cpu, h->date, o->repeat);
    (void)fputs(".\"\\n\".", file);
    write_quoted(file, text);
}

static void write_settings(FILE *file, const bench_job *job, int rows)
{
    (void)fprintf(file, "set terminal svg size 1500,%d noenhanced background '#ffffff'\nset output ", 80 + 360 * rows);
    write_quoted(file, job->options->plot);
    (void)fprintf(file, "\nset multiplot layout %d,3 title ", rows);
    write_title(file, job);
    (void)fprintf(file, "\nset logscale x 2\nset format x '%%.0b%%B'\nset xlabel 'size of the full vector (bytes)'\n"
                        "set xtics rotate by -45\nset grid\nset datafile missing 'nan'\n");
}

static void write_curve(FILE *file, const char *name, const char *columns, const char *style, const char *title)
{
    (void)fprintf(file, ", $%s using %s with %s title ", name, columns, style);
    write_quoted(file, title);
}

/* `columns` of the bound, of ours, of MPI here and of the twin; NULL: not in this panel. */
static void write_panel(FILE *file, const bench_job *job, const char *name, const char *const columns[4],
                        const char *style)
{
    char here[40], other[40];

    (void)snprintf(here, sizeof here, "MPI, %s", bench_level_here(job));
    (void)snprintf(other, sizeof other, "MPI, %s", bench_level_other(job));
    (void)fputs(columns[0] ? "plot NaN notitle" : "plot 1 with lines dashtype 2 lc 'black' notitle", file);
    if (columns[0]) {
        write_curve(file, name, columns[0], "lines dashtype 2 lc 'black'", "bound");
    }
    if (columns[1]) {
        write_curve(file, name, columns[1], style, "fsdp");
    }
    write_curve(file, name, columns[2], style, here);
    if (job->twin.there) {
        write_curve(file, name, columns[3], style, other);
    }
    (void)fputc('\n', file);
}

/* Time, bandwidth and ratio of a collective, side by side. */
static void write_panels(FILE *file, const bench_job *job, const char *name)
{
    static const char *const times[]  = {"1:14", "1:2:3:4", "1:6:7:8", "1:10:11:12"};
    static const char *const rates[]  = {"1:15", "1:5", "1:9", "1:13"};
    static const char *const ratios[] = {NULL, NULL, "1:16:17:18", "1:19:20:21"};

    (void)fprintf(file, "set title '%s'\nset logscale y 10\nset key left top\nset ylabel 'time (us)'\n", name);
    write_panel(file, job, name, times, "yerrorlines");
    (void)fprintf(file, "set key right bottom\nset ylabel '%s (GB/s)'\n", job->world->size > 1 ? "busbw" : "algbw");
    write_panel(file, job, name, rates, "linespoints");
    (void)fprintf(file, "set key right top\nset ylabel 'time of MPI / time of fsdp'\n");
    write_panel(file, job, name, ratios, "yerrorlines");
}

static void write_script(FILE *file, const bench_job *job, const bench_result *results, size_t n)
{
    int rows = 0;

    write_data(file, job, results, n);
    for (int c = 0; c < BENCH_N_COLLECTIVES; c++) {
        rows += bench_job_wants(job, (bench_collective)c);
    }
    write_settings(file, job, rows);
    for (int c = 0; c < BENCH_N_COLLECTIVES; c++) {
        if (bench_job_wants(job, (bench_collective)c)) {
            write_panels(file, job, bench_collective_name((bench_collective)c));
        }
    }
    (void)fprintf(file, "unset multiplot\n");
}

static int draw(const bench_job *job, const bench_result *results, size_t n)
{
    const char *folder = getenv("TMPDIR");
    char        path[300];
    FILE       *file;
    int         handle, ok;

    (void)snprintf(path, sizeof path, "%.250s/fsdp-bench-XXXXXX", folder ? folder : "/tmp");
    handle = mkstemp(path);
    if (handle < 0) {
        return 0;
    }
    file = fdopen(handle, "w");
    if (!file) {
        (void)close(handle);
        return 0;
    }
    write_script(file, job, results, n);
    ok = fclose(file) == 0 && run_gnuplot(path);
    (void)unlink(path);
    return ok;
}

fsdp_status bench_plot(const bench_job *job, const bench_result *results, size_t n)
{
    const int ok = job->world->rank != 0 || draw(job, results, n);

    return bench_agree(job->world, ok, "gnuplot could not draw the file of --plot; its message is above");
}
