#include "bench/base/world.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void bench_world_open(bench_world *world, int level)
{
    *world = (bench_world){.level = level};
    MPI_Comm_dup(MPI_COMM_WORLD, &world->comm);
    MPI_Comm_rank(world->comm, &world->rank);
    MPI_Comm_size(world->comm, &world->size);
    MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &world->machine);
    MPI_Comm_size(world->machine, &world->machine_ranks);
}

void bench_world_close(bench_world *world)
{
    MPI_Comm_free(&world->machine);
    MPI_Comm_free(&world->comm);
}

fsdp_status bench_fail(const bench_world *world, const char *format, ...)
{
    char    line[512];
    va_list arguments;

    if (world->rank != 0) {
        return FSDP_ERR_ARG;
    }
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "fsdp-bench: %s\n", line);
    return FSDP_ERR_ARG;
}

fsdp_status bench_agree_all(const bench_world *world, int ok, const char *line)
{
    int all = ok;

    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, world->comm);
    return all ? FSDP_OK : bench_fail(world, "%s", line);
}

double bench_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_max(const bench_world *world, double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, world->comm);
    return value;
}

double bench_max_asleep(const bench_world *world, double value)
{
    const struct timespec nap  = {0, 200 * 1000};
    int                   done = 0;
    MPI_Request           request;
    double                largest;

    MPI_Iallreduce(&value, &largest, 1, MPI_DOUBLE, MPI_MAX, world->comm, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* there is none any more, but a checker of sources cannot see it */
    return largest;
}

double bench_machine_sum(const bench_world *world, double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, world->machine);
    return value;
}

int bench_machine_cores(const bench_world *world)
{
    enum { MOST_CORES = 8192 };                         /* that a Linux can be built for */
    cpu_set_t mask[MOST_CORES / CPU_SETSIZE] = {{{0}}}; /* each is of 1024 */

    (void)sched_getaffinity(0, sizeof mask, mask);
    MPI_Allreduce(MPI_IN_PLACE, mask, (int)sizeof mask, MPI_BYTE, MPI_BOR, world->machine);
    return CPU_COUNT_S(sizeof mask, mask);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
