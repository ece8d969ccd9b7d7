/* What can be known of a machine without hwloc. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/topology/bind.h"
#include "lib/topology/mask.h"

static bool exists(const char *root, const char *path)
{
    char name[512];

    (void)snprintf(name, sizeof name, "%s%s", root, path);
    return access(name, F_OK) == 0;
}

bool fsdpi_is_flat(const char *root, const fsdp_mask *threads)
{
    char      path[96];
    fsdp_mask numas, cache;

    if (fsdpi_mask_is_empty(threads) || exists(root, "/sys/class/kfd") || exists(root, "/proc/driver/nvidia")) {
        return false;
    }
    if (!fsdpi_mask_from_file(root, "/sys/devices/system/node/has_cpu", &numas) || fsdp_mask_count(&numas) != 1) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list",
                   fsdpi_mask_first(threads));
    return fsdpi_mask_from_file(root, path, &cache) && fsdpi_mask_within(threads, &cache);
}

int fsdpi_processes_on_host(void)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE",
                                        "MV2_COMM_WORLD_LOCAL_SIZE"};

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const char *text  = getenv(NAMES[i]);
        const long  count = text != NULL ? strtol(text, NULL, 10) : 0;

        if (count > 0 && count < 1000000) {
            return (int)count;
        }
    }
    return 0;
}
