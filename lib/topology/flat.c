/* What can be known of a machine without hwloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/topology/bind.h"
#include "lib/topology/mask.h"

/* Reads a list as "0-7" from a file of the system. */
static bool read_mask(const char *root, const char *path, fsdp_mask *mask)
{
    char  name[512], line[4096] = "";
    FILE *file;

    (void)snprintf(name, sizeof name, "%s%s", root, path);
    file            = fopen(name, "re");
    const bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    return read && line[0] != '\0' && fsdp_mask_read(line, mask) == FSDP_OK;
}

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
    if (!read_mask(root, "/sys/devices/system/node/has_cpu", &numas) || fsdp_mask_count(&numas) != 1) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list",
                   fsdpi_mask_first(threads));
    return read_mask(root, path, &cache) && fsdpi_mask_within(threads, &cache);
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
