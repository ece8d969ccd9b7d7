#include "bench/collectives/plot.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/job/header.h"

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

static double or_nan(double value, int known)
{
    return known ? value : (double)NAN;
}

/* Named blocks of data, one per collective: size, our busbw, MPI's here, MPI's in the twin, the two ratios. */
static void write_data(FILE *file, const bench_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bench_result *r    = &results[i];
        const bench_case   *c    = &r->what;
        const int           here = r->here.seconds > 0, other = r->other.seconds > 0;

        if (i == 0 || results[i - 1].what.collective != c->collective) {
            (void)fprintf(file, "%s$%s << EOD\n", i ? "EOD\n" : "", bench_collective_name(c->collective));
        }
        (void)fprintf(file, "%zu %g %g %g %g %g\n", c->bytes, bench_busbw(c, r->seconds),
                      or_nan(bench_busbw(c, r->here.seconds), here), or_nan(bench_busbw(c, r->other.seconds), other),
                      or_nan(r->here.ratio, here), or_nan(r->other.ratio, other));
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

static void write_settings(FILE *file, const bench_job *job, int rows)
{
    (void)fprintf(file, "set terminal svg size 1000,%d noenhanced background '#ffffff'\nset output ", 60 + 340 * rows);
    write_quoted(file, job->options->plot);
    (void)fprintf(file,
                  "\nset multiplot layout %d,2 title '%d ranks on %d node%s: fsdp and MPI, %s'\n"
                  "set logscale x 2\nset format x '%%.0b%%B'\nset xlabel 'size of the full vector (bytes)'\n"
                  "set xtics rotate by -45\nset grid\nset key left top\nset datafile missing 'nan'\n",
                  rows, job->world->size, job->limits.nodes, job->limits.nodes > 1 ? "s" : "",
                  fsdp_dtype_name(job->options->dtype));
}

static void write_pair(FILE *file, const bench_job *job, const char *name)
{
    const char *here = bench_level_here(job), *other = bench_level_other(job);
    const int   twin = job->twin.there;

    (void)fprintf(file,
                  "set title '%s'\nset ylabel 'busbw (GB/s)'\nset yrange [0:*]\n"
                  "plot $%s using 1:2 with linespoints lw 2 title 'fsdp'"
                  ", $%s using 1:3 with linespoints title 'MPI, %s'",
                  name, name, name, here);
    if (twin) {
        (void)fprintf(file, ", $%s using 1:4 with linespoints title 'MPI, %s'", name, other);
    }
    (void)fprintf(file,
                  "\nset ylabel 'time of MPI / time of fsdp'\n"
                  "plot 1 with lines dashtype 2 notitle, $%s using 1:5 with linespoints title 'MPI, %s'",
                  name, here);
    if (twin) {
        (void)fprintf(file, ", $%s using 1:6 with linespoints title 'MPI, %s'", name, other);
    }
    (void)fputc('\n', file);
}

static void write_script(FILE *file, const bench_job *job, const bench_result *results, size_t n)
{
    int rows = 0;

    write_data(file, results, n);
    for (int c = 0; c < BENCH_N_COLLECTIVES; c++) {
        rows += bench_job_wants(job, (bench_collective)c);
    }
    write_settings(file, job, rows);
    for (int c = 0; c < BENCH_N_COLLECTIVES; c++) {
        if (bench_job_wants(job, (bench_collective)c)) {
            write_pair(file, job, bench_collective_name((bench_collective)c));
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
