#include "lib/node/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/yielding.h"

static const size_t usual_cache = (size_t)32 << 20; /* BYTES, where the system does not say */

/* What Linux says of the last-level cache above a core. */
static bool read_of_cache(const char *root, size_t core, const char *what, char *text, int bytes)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%zu/cache/index3/%s", root, core, what);
    FILE      *file = fopen(path, "re");
    const bool read = file != NULL && fgets(text, bytes, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return read;
}

/* BYTES; the sizes in these files have a unit. */
static size_t size_of_cache(const char *root, size_t core)
{
    char   text[32], *unit;
    size_t size;

    if (!read_of_cache(root, core, "size", text, sizeof text)) {
        return 0;
    }
    size = strtoull(text, &unit, 10);
    return *unit == 'M' ? size << 20 : *unit == 'K' ? size << 10 : size;
}

/* Not sysconf(): for some processors it names all caches of a socket, of which a virtual machine has a part. */
size_t fsdpi_cache_bytes(const char *root, const fsdpi_core_mask *cores)
{
    char            text[256];
    fsdpi_core_mask seen  = {0};
    size_t          bytes = 0;

    for (size_t core = 0; core < FSDPI_MOST_CORES; core++) {
        if (!CPU_ISSET_S(core, sizeof *cores, cores->set) ||
            !read_of_cache(root, core, "shared_cpu_list", text, sizeof text)) {
            continue;
        }
        const unsigned long first = strtoul(text, NULL, 10);
        bytes += first < FSDPI_MOST_CORES && !CPU_ISSET_S(first, sizeof seen, seen.set) ? size_of_cache(root, core) : 0;
        CPU_SET_S(first, sizeof seen, seen.set);
    }
    return bytes > 0 ? bytes : usual_cache;
}

int fsdpi_machine_look(MPI_Comm comm, int timeout_s, fsdpi_machine *machine)
{
    fsdpi_core_mask mask = {0};

    (void)sched_getaffinity(0, sizeof mask, mask.set); /* where that fails, others' masks remain */
    const int code       = fsdpi_mpi_allreduce(&mask, (int)sizeof mask, MPI_BYTE, MPI_BOR, comm, timeout_s);
    const int cores      = CPU_COUNT_S(sizeof mask, mask.set);
    machine->cores       = cores > 0 ? cores : 1;
    machine->cache_bytes = fsdpi_cache_bytes("", &mask);
    return code;
}
