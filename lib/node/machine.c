#include "lib/node/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/yielding.h"

static const size_t usual_cache = (size_t)32 << 20; /* BYTES, where the system does not say */

/* What Linux says of the last-level cache above a core. */
static bool read_of_cache(size_t core, const char *what, char *text, int bytes)
{
    char path[96];

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cache/index3/%s", core, what);
    FILE      *file = fopen(path, "re");
    const bool read = file != NULL && fgets(text, bytes, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return read;
}

/* BYTES; the sizes in these files have a unit. */
static size_t size_of_cache(size_t core)
{
    char   text[32], *unit;
    size_t size;

    if (!read_of_cache(core, "size", text, sizeof text)) {
        return 0;
    }
    size = strtoull(text, &unit, 10);
    return *unit == 'M' ? size << 20 : *unit == 'K' ? size << 10 : size;
}

/* Not sysconf(): for some processors it names all caches of a socket, of which a virtual machine has a part. */
static size_t caches_of(const cpu_set_t *cores)
{
    char      text[256];
    cpu_set_t seen;
    size_t    bytes = 0;

    CPU_ZERO(&seen);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, cores) || !read_of_cache(core, "shared_cpu_list", text, sizeof text)) {
            continue;
        }
        const unsigned long first = strtoul(text, NULL, 10);
        bytes += first < CPU_SETSIZE && !CPU_ISSET(first, &seen) ? size_of_cache(core) : 0;
        CPU_SET(first, &seen);
    }
    return bytes > 0 ? bytes : usual_cache;
}

int fsdpi_machine_look(MPI_Comm comm, int timeout_s, fsdpi_machine *machine)
{
    cpu_set_t mask;

    CPU_ZERO(&mask);
    (void)sched_getaffinity(0, sizeof mask, &mask); /* where that fails, others' masks remain */
    const int code       = fsdpi_mpi_allreduce(&mask, (int)sizeof mask, MPI_BYTE, MPI_BOR, comm, timeout_s);
    machine->cores       = CPU_COUNT(&mask) > 0 ? CPU_COUNT(&mask) : 1;
    machine->cache_bytes = caches_of(&mask);
    return code;
}
