/*
 * fsdp_checkpoint_add_model(): a model with a name becomes part of a checkpoint once all ranks know that it can.
 * Cost: two agreements, one allgather of 8 bytes from each rank.
 */
#include <stdio.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/write/caching.h"
#include "shard/checkpoint/write/checkpoint.h"
#include "shard/checkpoint/write/sums.h"
#include "shard/state/plane.h"

#define ADD "fsdp_checkpoint_add_model"

typedef struct addition {
    fsdp_checkpoint *checkpoint;
    fsdp_context    *ctx;
    const char      *name;
    fsdp_model      *model;
    fsdp_optimizer  *optimizer;
    char             where[FSDPI_DETAIL_BYTES]; /* for errors: the function and the model's name */
} addition;

/* ---- what is wrong on this rank ------------------------------------------------------------------------------------ */

static fsdp_status refuse(const addition *a, const char *why)
{
    return fsdpi_fail_together(a->ctx, FSDP_ERR_ARG, "%s: %s", a->where, why);
}

static fsdp_status check_name(const addition *a)
{
    const char *wrong = fsdpi_model_name_wrong(a->name);

    if (wrong != NULL) {
        return fsdpi_fail_together(a->ctx, FSDP_ERR_ARG, "%s: the name %s", a->where, wrong);
    }
    return fsdpi_saved_models_find(a->checkpoint->models, a->name) == NULL
               ? FSDP_OK
               : refuse(a, "there is a model of that name already; rename one of them");
}

/* Whether the checkpoint has it already, under whatever name. */
static fsdp_status check_new(const addition *a)
{
    size_t n = 0;

    for (const fsdpi_saved_model *saved = a->checkpoint->models; saved != NULL; saved = saved->next) {
        if (saved->model == a->model && saved->state.name[0] == '\0') {
            return refuse(a, "the checkpoint was opened with this model; to give it a name, open with "
                             "fsdp_checkpoint_open_folder");
        }
        if (saved->model == a->model) {
            return fsdpi_fail_together(a->ctx, FSDP_ERR_ARG, "%s: this model has been added as '%s'; add each once",
                                       a->where, saved->state.name);
        }
        n += saved->state.name[0] != '\0';
    }
    return n < FSDPI_MOST_NAMED_MODELS
               ? FSDP_OK
               : fsdpi_fail_together(a->ctx, FSDP_ERR_UNSUPPORTED,
                                     "%s: there are %zu models already, and a checkpoint holds no more; save some of "
                                     "them in another folder",
                                     a->where, n);
}

static fsdp_status check(const addition *a)
{
    FSDP_TRY(check_name(a));
    if (a->model == NULL) {
        return refuse(a, "the model is NULL; pass one from fsdp_model_create");
    }
    if (a->model->plane.ctx != a->ctx) {
        return refuse(
            a, fsdpi_has_plane(a->model)
                   ? "the checkpoint is in another context than that of all axes that the model has on its mesh; "
                     "open it in that one"
                   : "the model is in another context than the checkpoint; make it in that one");
    }
    FSDP_TRY(check_new(a));
    return fsdpi_saved_model_check(a->model, a->optimizer, a->where);
}

/* ---- between ranks --------------------------------------------------------------------------------------------------- */

static fsdp_status agree(const addition *a, fsdp_status status)
{
    const char *name = a->name != NULL ? a->name : "";
    char        label[FSDPI_DETAIL_BYTES];

    (void)snprintf(label, sizeof label, "model '%.100s'%s", name, a->optimizer != NULL ? ", optimizer" : "");
    return fsdpi_agree(a->ctx, ADD, label, status == FSDP_OK ? fsdpi_hash_text(FSDPI_HASH_START, name) : 0, status,
                       true);
}

static fsdpi_saved_model **end_of(fsdp_checkpoint *c)
{
    fsdpi_saved_model **end = &c->models;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    return end;
}

static fsdp_status take(const addition *a)
{
    fsdp_checkpoint    *c   = a->checkpoint;
    fsdpi_saved_model **end = end_of(c), *made;
    fsdp_status         status =
        fsdpi_saved_model_make(a->name, a->model, a->optimizer, &c->options, c->models, a->where, &made);

    status = fsdpi_agree(a->ctx, ADD, "the same tensors", status == FSDP_OK ? fsdpi_saved_model_hash(made) : 0, status,
                         true);
    if (status == FSDP_OK) {
        *end   = made;
        status = fsdpi_sums_count(c, ADD);
        status = status == FSDP_OK ? fsdpi_caching_reserve(c, ADD) : status;
    }
    if (status != FSDP_OK) {
        *end = NULL;
        fsdpi_saved_model_free(made);
    }
    return status;
}

fsdp_status fsdp_checkpoint_add_model(fsdp_checkpoint *checkpoint, const char *name, fsdp_model *model,
                                      fsdp_optimizer *optimizer)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, ADD ": the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    addition a = {
        .checkpoint = checkpoint, .ctx = checkpoint->ctx, .name = name, .model = model, .optimizer = optimizer};

    (void)snprintf(a.where, sizeof a.where, ADD ": model '%.100s'", name != NULL ? name : "");
    FSDP_TRY(fsdp_checkpoint_wait(checkpoint)); /* it still reads the list */
    FSDP_TRY(agree(&a, check(&a)));
    return take(&a);
}
