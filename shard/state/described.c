#include "shard/state/described.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/device/memory.h"
#include "shard/state/plane.h"
#include "shard/state/stages.h"
#include "shard/state/tensor.h"
#include "shard/state/tensor_groups.h"

static const char commit_name[] = "fsdp_model_commit";

/* ---- as bytes ---------------------------------------------------------------------------------------------------- */

/* Of what a record is; its name follows, with a NUL. Records of a stage: its units, each with its tensors, then its groups. */
typedef struct record_head {
    uint64_t fingerprint;
    uint64_t kind; /* UNIT, TENSOR; of a group, GROUP and how many tensors it has */
} record_head;

enum { UNIT, TENSOR, GROUP };

typedef struct record {
    record_head head;
    const char *name;
} record;

/* Puts one behind the others, or without `bytes` only counts. */
static void put(char *bytes, size_t *used, uint64_t fingerprint, uint64_t kind, const char *name)
{
    const record_head head   = {fingerprint, kind};
    const size_t      length = strlen(name) + 1;

    if (bytes != NULL) {
        memcpy(bytes + *used, &head, sizeof head);
        memcpy(bytes + *used + sizeof head, name, length);
    }
    *used += sizeof head + length;
}

static const char *take(const char *at, record *r)
{
    memcpy(&r->head, at, sizeof r->head);
    r->name = at + sizeof r->head;
    return r->name + strlen(r->name) + 1;
}

/* What has to be the same where two stages have a tensor. */
static uint64_t fingerprint_of(const fsdpi_tensor *tensor)
{
    uint64_t hash = fsdpi_hash_bytes(FSDPI_HASH_START, tensor->whole_shape, tensor->n_dims * sizeof(size_t));

    hash = fsdpi_hash_u64(hash, tensor->n_dims);
    hash = fsdpi_hash_u64(hash, tensor->flags);
    hash = fsdpi_hash_u64(hash, tensor->tp_row);
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->dtype);
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->fill);
    hash = fsdpi_hash_bytes(hash, &tensor->a, sizeof tensor->a);
    return fsdpi_hash_bytes(hash, &tensor->b, sizeof tensor->b);
}

static size_t count_joined(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    size_t n = 0;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            n += fsdpi_is_divided(&unit->tensors[i]) && unit->tensors[i].group == group;
        }
    }
    return n;
}

static size_t describe(const fsdp_model *model, char *bytes)
{
    size_t used = 0;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        put(bytes, &used, fsdpi_hash_u64(unit->fingerprint, unit->place), UNIT, unit->name);
        for (size_t i = 0; i < unit->n_tensors; i++) {
            if (unit->tensors[i].owner == &unit->tensors[i]) {
                put(bytes, &used, fingerprint_of(&unit->tensors[i]), TENSOR, unit->tensors[i].name);
            }
        }
    }
    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        put(bytes, &used, fsdpi_tensor_group_fingerprint(model, group), GROUP + count_joined(model, group),
            group->pattern);
    }
    return used;
}

/* ---- compared ---------------------------------------------------------------------------------------------------- */

static fsdp_status differ(const fsdp_model *model, const char *what, const char *name)
{
    return fsdpi_fail_together(model->ctx, FSDP_ERR_MISMATCH,
                               "%s: %s '%.200s' is another one on other positions of axis \"%s\", or is not there; add "
                               "the same on all of them",
                               commit_name, what, name, model->plane.tensor_text);
}

/* With what the first rank of this stage has described. */
static fsdp_status compare_own(const fsdp_model *model, const char *mine, size_t n, const fsdpi_stage_bytes *all)
{
    static const char *const words[] = {"unit", "tensor", "the pattern of a group"};
    const char              *theirs = fsdpi_stage_begin(all, model->plane.stage), *at = mine;
    const char              *end = fsdpi_stage_end(all, model->plane.stage);

    while (at < mine + n) {
        record own, other;

        at                     = take(at, &own);
        const char *const word = words[own.head.kind < GROUP ? own.head.kind : GROUP];
        if (theirs == end) {
            return differ(model, word, own.name);
        }
        theirs = take(theirs, &other);
        if (memcmp(&own.head, &other.head, sizeof own.head) != 0 || strcmp(own.name, other.name) != 0) {
            return differ(model, word, own.name);
        }
    }
    record more;
    if (theirs < end) {
        (void)take(theirs, &more);
        return differ(model, words[more.head.kind < GROUP ? more.head.kind : GROUP], more.name);
    }
    return FSDP_OK;
}

/* A tensor of another stage, which may be one of this stage's too. */
static fsdp_status meet(fsdp_model *model, int stage, const record *r)
{
    fsdpi_tensor *tensor = fsdpi_find_tensor(model, r->name);

    if (tensor == NULL) {
        return FSDP_OK;
    }
    if (tensor->owner != tensor || fingerprint_of(tensor) != r->head.fingerprint) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_MISMATCH,
                                   "%s: tensor '%.200s' is another one in stage %d than in stage %d; describe it alike "
                                   "in both, or give them different names",
                                   commit_name, r->name, stage, model->plane.stage);
    }
    tensor->elsewhere = tensor->elsewhere || stage < model->plane.stage;
    tensor->copies += stage > model->plane.stage;
    return FSDP_OK;
}

static void forget_copies(const fsdp_model *model)
{
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            unit->tensors[i].elsewhere = false;
            unit->tensors[i].copies    = 0;
        }
    }
}

static fsdp_status compare_stages(fsdp_model *model, const fsdpi_stage_bytes *all)
{
    forget_copies(model);
    for (int stage = 0; stage < all->n_stages; stage++) {
        const char *at = fsdpi_stage_begin(all, stage);
        record      r;

        while (stage != model->plane.stage && at < fsdpi_stage_end(all, stage)) {
            at = take(at, &r);
            FSDP_TRY(r.head.kind == TENSOR ? meet(model, stage, &r) : FSDP_OK);
        }
    }
    return FSDP_OK;
}

/* How many tensors of all stages belong to a group. */
static uint64_t count_everywhere(const fsdpi_stage_bytes *all, const char *pattern)
{
    uint64_t n = 0;

    for (const char *at = all->bytes; at < all->bytes + all->total;) {
        record r;

        at = take(at, &r);
        n += r.head.kind >= GROUP && strcmp(r.name, pattern) == 0 ? r.head.kind - GROUP : 0;
    }
    return n;
}

static fsdp_status check_groups(const fsdp_model *model, const fsdpi_stage_bytes *all)
{
    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        if (count_everywhere(all, group->pattern) == 0) {
            return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                       "%s: the group '%.100s' matches no tensor of any stage that belongs to no group "
                                       "added before; see the names given to fsdp_unit_add",
                                       commit_name, group->pattern);
        }
    }
    return FSDP_OK;
}

static fsdp_status compare(fsdp_model *model, const char *mine, size_t n)
{
    fsdpi_stage_bytes all;
    fsdp_status       status =
        fsdpi_stages_gather(model, commit_name, mine, n, mine != NULL ? FSDP_OK : FSDP_ERR_MEMORY, &all);

    if (status == FSDP_OK) {
        status = compare_own(model, mine, n, &all);
        status = status == FSDP_OK ? compare_stages(model, &all) : status;
        status = status == FSDP_OK ? check_groups(model, &all) : status;
        status = fsdpi_plane_agree(model, commit_name, "units", 0, status);
    }
    fsdpi_stages_free(model, &all);
    return status;
}

fsdp_status fsdpi_described_compare(fsdp_model *model)
{
    if (!fsdpi_has_plane(model)) {
        return FSDP_OK;
    }
    const size_t n    = describe(model, NULL);
    char        *mine = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, n);

    if (mine != NULL) {
        (void)describe(model, mine);
    }
    const fsdp_status status = compare(model, mine, n);
    fsdpi_free(model->ctx, FSDP_MEMORY_BOOKKEEPING, mine, n);
    return status;
}
