#include "bench/machine/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Up to the first of `ends`, with blanks for tabs. */
static void copy_words(char *to, size_t bytes, const char *from, const char *ends)
{
    (void)snprintf(to, bytes, "%.*s", (int)strcspn(from, ends), from);
    for (char *tab = strchr(to, '\t'); tab; tab = strchr(tab, '\t')) {
        *tab = ' ';
    }
}

static void find_cpu(char *cpu, size_t bytes)
{
    FILE          *file = fopen("/proc/cpuinfo", "re");
    struct utsname system;
    char           line[400];

    (void)snprintf(cpu, bytes, "%s", uname(&system) == 0 ? system.machine : "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');

        if (value && strncmp(line, "model name", strlen("model name")) == 0) {
            copy_words(cpu, bytes, value + 1 + strspn(value + 1, " "), "\n");
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

void bench_host_find(const bench_world *world, bench_host *host)
{
    char         version[MPI_MAX_LIBRARY_VERSION_STRING];
    const time_t now = time(NULL);
    struct tm    utc;
    int          length;

    *host = (bench_host){.cores = bench_machine_cores(world)};
    if (gethostname(host->name, sizeof host->name - 1) != 0) {
        (void)snprintf(host->name, sizeof host->name, "unknown");
    }
    find_cpu(host->cpu, sizeof host->cpu);
    MPI_Get_library_version(version, &length);
    copy_words(host->mpi, sizeof host->mpi, version, ",\n");
    if (gmtime_r(&now, &utc)) {
        (void)strftime(host->date, sizeof host->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
}
