#include "lib/topology/place.h"

#include <stdio.h>

#include "lib/topology/bind.h"
#include "lib/topology/mask.h"

static int32_t cache_of(const char *root, const fsdp_mask *threads)
{
    char      path[96];
    fsdp_mask sharers;

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list",
                   fsdpi_mask_first(threads));
    if (!fsdpi_mask_from_file(root, path, &sharers) || !fsdpi_mask_within(threads, &sharers)) {
        return -1;
    }
    return fsdpi_mask_first(&sharers);
}

static int32_t numa_of(const char *root, const fsdp_mask *threads)
{
    fsdp_mask numas, local;

    if (!fsdpi_mask_from_file(root, "/sys/devices/system/node/has_cpu", &numas)) {
        return -1;
    }
    for (int n = 0; n < FSDPI_MASK_BITS; n++) {
        char path[64];

        (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", n);
        if (fsdp_mask_has(&numas, n) && fsdpi_mask_from_file(root, path, &local) &&
            fsdpi_mask_within(threads, &local)) {
            return n;
        }
    }
    return -1;
}

fsdpi_place fsdpi_place_of(const char *root, const fsdp_mask *threads)
{
    if (fsdpi_mask_is_empty(threads)) {
        return (fsdpi_place){.cache = -1, .numa = -1};
    }
    return (fsdpi_place){.cache = cache_of(root, threads), .numa = numa_of(root, threads)};
}

fsdpi_place fsdpi_place_now(void)
{
    fsdp_mask threads = {{0}};

    if (!fsdpi_mask_now(&threads)) {
        threads = (fsdp_mask){{0}};
    }
    return fsdpi_place_of("", &threads);
}
