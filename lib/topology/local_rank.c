/* What this process may use. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/gpu.h"
#include "lib/topology/bind.h"
#include "lib/topology/gpu_ids.h"
#include "lib/topology/mask.h"
#include "lib/topology/node.h"

static void look_at_memory(fsdp_mask *memory)
{
    static const char LABEL[] = "Mems_allowed_list:";
    char              line[1024];
    FILE             *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, LABEL, sizeof LABEL - 1) == 0) {
            line[strcspn(line, "\n")] = '\0';
            (void)fsdp_mask_read(line + sizeof LABEL - 1 + strspn(line + sizeof LABEL - 1, " \t"), memory);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static int entries(const char *list)
{
    int n = 1;

    for (; *list != '\0'; list++) {
        n += *list == ',';
    }
    return n;
}

/* HIP counts within what ROCR_VISIBLE_DEVICES leaves. */
static bool are_at_odds(const char *rocr, const char *hip)
{
    if (rocr == NULL || hip == NULL || rocr[0] == '\0' || hip[0] == '\0') {
        return false;
    }
    const int left = entries(rocr);
    for (const char *entry = hip; entry != NULL; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        if (*entry >= '0' && *entry <= '9' && strtol(entry, NULL, 10) >= left) {
            return true;
        }
    }
    return false;
}

static void look_at_gpus(fsdp_local_rank *mine)
{
    const int count = fsdpi_gpu_count();

    mine->n_visible = 0;
    for (int d = 0; d < count && mine->n_visible < FSDP_MOST_GPUS; d++) {
        fsdp_visible_gpu *gpu = &mine->visible[mine->n_visible];

        if (!fsdpi_gpu_address(d, gpu->address, sizeof gpu->address)) {
            return; /* those behind it would be taken for others */
        }
        gpu->ordinal = 0;
        for (char *c = gpu->address; *c != '\0'; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
        for (int e = 0; e < mine->n_visible; e++) {
            gpu->ordinal += strcmp(mine->visible[e].address, gpu->address) == 0;
        }
        mine->n_visible++;
    }
}

fsdp_status fsdp_local_rank_look(fsdp_local_rank *mine)
{
    if (mine == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_local_rank_look: the place for the answer is NULL");
    }
    memset(mine, 0, sizeof *mine);
    (void)fsdpi_mask_now(&mine->threads);
    look_at_memory(&mine->memory);
    mine->at_odds   = are_at_odds(getenv("ROCR_VISIBLE_DEVICES"), getenv("HIP_VISIBLE_DEVICES"));
    mine->n_visible = -1;
    mine->device    = -1;
    if (fsdpi_gpu_has_runtime() && (fsdpi_gpu_count() > 0 || fsdpi_has_gpu_driver())) { /* else they are another's */
        look_at_gpus(mine);
        mine->device = mine->n_visible > 0 ? fsdpi_gpu_selected() : -1;
    }
    return FSDP_OK;
}
