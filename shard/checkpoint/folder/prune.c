/*
 * Which checkpoints stay.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/folder/remove.h"
#include "shard/checkpoint/folder/run_folder.h"

static int newest_first(const void *a, const void *b)
{
    const fsdpi_checkpoint_name *x = a, *y = b;

    if (x->step != y->step) {
        return x->step < y->step ? 1 : -1;
    }
    return x->attempt < y->attempt ? 1 : x->attempt > y->attempt ? -1 : 0;
}

/* NULL where there are none, or no memory: then nothing is removed. The caller frees it. */
static fsdpi_checkpoint_name *list_checkpoints(const char *folder, size_t *n)
{
    DIR                   *dir  = opendir(folder);
    fsdpi_checkpoint_name *list = NULL;

    *n = 0;
    if (dir == NULL) {
        return NULL;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        fsdpi_checkpoint_name one;

        if (fsdpi_checkpoint_name_parse(entry->d_name, &one)) {
            fsdpi_checkpoint_name *longer = realloc(list, (*n + 1) * sizeof *list);

            if (longer == NULL) {
                break;
            }
            list         = longer;
            list[(*n)++] = one;
        }
    }
    (void)closedir(dir);
    return list;
}

void fsdpi_run_folder_prune(const fsdpi_run_folder *folder, size_t keep_last, size_t keep_every)
{
    size_t                n, kept = 0;
    fsdpi_checkpoint_name latest;
    fsdpi_problem         problem;

    if (keep_last == 0 || !fsdpi_checkpoint_name_parse(folder->name, &latest)) {
        return;
    }
    fsdpi_checkpoint_name *list = list_checkpoints(folder->path, &n);
    if (n > 0) {
        qsort(list, n, sizeof *list, newest_first);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].step > latest.step) {
            continue;
        }
        const bool again = i > 0 && list[i].step == list[i - 1].step; /* an older one of the same step */
        const bool stays = !again && (kept < keep_last || (keep_every > 0 && list[i].step % keep_every == 0));

        kept += !again;
        if (!stays && strcmp(list[i].name, folder->name) != 0 &&
            fsdpi_token_check(folder->path, &folder->token, &problem) == FSDP_OK) {
            fsdpi_checkpoint_remove(folder->path, folder->job, list[i].name);
        }
    }
    free(list);
}
