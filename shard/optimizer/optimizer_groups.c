#include "shard/optimizer/optimizer_groups.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>

#include "lib/base/hash.h"
#include "lib/base/options.h"
#include "lib/base/plural.h"
#include "shard/state/plane.h"

bool fsdpi_is_rate(double value)
{
    return isfinite(value) && value >= 0.0;
}

static bool inherits(double value)
{
    return value < 0.0; /* what is neither a rate nor FSDP_INHERIT has been refused */
}

double fsdpi_group_lr(const fsdp_optimizer *optimizer, size_t group)
{
    if (group == 0) {
        return optimizer->options.lr;
    }
    const fsdp_optimizer_group *own = &optimizer->groups[group - 1].own;
    return own->lr_scale * (inherits(own->lr) ? optimizer->options.lr : own->lr);
}

double fsdpi_group_weight_decay(const fsdp_optimizer *optimizer, size_t group)
{
    const double own = group == 0 ? FSDP_INHERIT : optimizer->groups[group - 1].own.weight_decay;

    return inherits(own) ? optimizer->options.weight_decay : own;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static bool is_rate_or_inherited(double value)
{
    return fsdpi_is_rate(value) || value == FSDP_INHERIT;
}

static fsdp_status out_of_range(fsdp_context *ctx, const char *field, double value, const char *range)
{
    return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_optimizer_add_group: %s is %g; it must be %s", field, value,
                               range);
}

static fsdp_status check_group(const fsdp_optimizer *optimizer, const char *pattern, const fsdp_optimizer_group *given,
                               fsdp_optimizer_group *group)
{
    fsdp_context *ctx = optimizer->model->ctx;

    if (pattern == NULL || given == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_optimizer_add_group: the %s is NULL",
                                   pattern == NULL ? "pattern" : "group");
    }
    FSDP_TRY(fsdpi_options_take(ctx, "fsdp_optimizer_group", given, group, sizeof *group));
    if (optimizer->steps > 0) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_STATE,
            "fsdp_optimizer_add_group: '%.100s' comes after %zu step%s; add groups before the first", pattern,
            optimizer->steps, fsdpi_s(optimizer->steps));
    }
    if (!is_rate_or_inherited(group->lr)) {
        return out_of_range(ctx, "lr", group->lr, "0 or more, or FSDP_INHERIT");
    }
    if (!fsdpi_is_rate(group->lr_scale)) {
        return out_of_range(ctx, "lr_scale", group->lr_scale, "0 or more");
    }
    if (!is_rate_or_inherited(group->weight_decay)) {
        return out_of_range(ctx, "weight_decay", group->weight_decay, "0 or more, or FSDP_INHERIT");
    }
    return FSDP_OK;
}

/* Frozen tensors may, which no rate is for. */
static bool may_join(const fsdp_optimizer *optimizer, const fsdpi_flat *flat)
{
    return flat->frozen || fsdpi_updates(optimizer, flat);
}

/* Tensors that match and have no group join `number`, which must not stay without any. */
static fsdp_status join(fsdp_optimizer *optimizer, const char *pattern, size_t number)
{
    size_t u = 0, matched = 0, joined = 0;

    for (const fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        size_t *group = optimizer->flats[u].group;

        for (size_t t = 0; t < flat->n_tensors && may_join(optimizer, flat); t++) {
            if (fnmatch(pattern, flat->tensors[t]->name, 0) == 0) {
                matched++;
                joined += group[t] == 0;
                group[t] = group[t] == 0 ? number : group[t];
            }
        }
    }
    if (joined > 0 || (optimizer->model->plane.n_stages > 1 && number <= optimizer->model->plan.n_tensors)) {
        return FSDP_OK; /* another stage may have some */
    }
    return matched == 0
               ? fsdpi_fail(optimizer->model->ctx, FSDP_ERR_ARG,
                            "fsdp_optimizer_add_group: '%.100s' matches no tensor%s; see the names given to "
                            "fsdp_unit_add",
                            pattern, optimizer->model->tensor_groups != NULL ? " that the optimizer updates" : "")
               : fsdpi_fail(optimizer->model->ctx, FSDP_ERR_ARG,
                            "fsdp_optimizer_add_group: the %zu tensors that '%.100s' matches are in groups "
                            "added before; add the narrower pattern first",
                            matched, pattern);
}

static void leave(fsdp_optimizer *optimizer, size_t number)
{
    size_t u = 0;

    for (const fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        for (size_t t = 0; t < flat->n_tensors; t++) {
            if (optimizer->flats[u].group[t] == number) {
                optimizer->flats[u].group[t] = 0;
            }
        }
    }
}

/* What a label is too short for, and which tensors have joined. */
static uint64_t fingerprint(const fsdp_optimizer *optimizer, const char *pattern, const fsdp_optimizer_group *group)
{
    uint64_t hash = fsdpi_hash_bytes(fsdpi_hash_text(FSDPI_HASH_START, pattern), group, sizeof *group);
    size_t   u    = 0;

    for (const fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        hash = fsdpi_hash_bytes(hash, optimizer->flats[u].group, flat->n_tensors * sizeof(size_t));
    }
    return hash;
}

void fsdp_optimizer_group_init_size(fsdp_optimizer_group *group, size_t size)
{
    static const fsdp_optimizer_group defaults = FSDP_OPTIMIZER_GROUP_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, group, size);
}

fsdp_status fsdp_optimizer_add_group(fsdp_optimizer *optimizer, const char *pattern, const fsdp_optimizer_group *group)
{
    char                 label[FSDPI_DETAIL_BYTES] = "";
    uint64_t             salt                      = 0;
    fsdp_optimizer_group chosen                    = FSDP_OPTIMIZER_GROUP_DEFAULT;

    if (optimizer == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_optimizer_add_group: the optimizer is NULL; pass one from fsdp_optimizer_create");
    }
    const size_t number = optimizer->n_groups + 1;
    fsdp_status  status = check_group(optimizer, pattern, group, &chosen);
    if (status == FSDP_OK) {
        status = join(optimizer, pattern, number);
        salt   = fingerprint(optimizer, pattern, &chosen);
        (void)snprintf(label, sizeof label, "'%.80s', lr %.9g, lr_scale %.9g, weight_decay %.9g", pattern, chosen.lr,
                       chosen.lr_scale, chosen.weight_decay);
    }
    status = fsdpi_agree(optimizer->model->ctx, "fsdp_optimizer_add_group", label, salt, status, false);
    status = fsdpi_plane_follow(optimizer->model, "fsdp_optimizer_add_group", status);
    if (status != FSDP_OK) {
        leave(optimizer, number);
        return status;
    }
    optimizer->groups[optimizer->n_groups++] =
        (fsdpi_group){.pattern = fsdpi_hash_text(FSDPI_HASH_START, pattern), .own = chosen};
    return FSDP_OK;
}

/* ---- rates ------------------------------------------------------------------------------------------------------- */

uint64_t fsdpi_describe_rates(const fsdp_optimizer *optimizer, char *text, size_t size)
{
    uint64_t hash = FSDPI_HASH_START;
    int      used = snprintf(text, size, "lr %.17g", optimizer->options.lr);

    for (size_t g = 1; g <= optimizer->n_groups; g++) {
        const double lr = fsdpi_group_lr(optimizer, g);

        hash = fsdpi_hash_bytes(hash, &lr, sizeof lr);
        if (used >= 0 && (size_t)used < size) {
            used += snprintf(text + used, size - (size_t)used, "%s %.9g", g == 1 ? ", of groups" : "", lr);
        }
    }
    return hash;
}

fsdp_status fsdp_optimizer_set_group_lr(fsdp_optimizer *optimizer, const char *pattern, double lr)
{
    if (optimizer == NULL || pattern == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_optimizer_set_group_lr: the %s is NULL",
                          optimizer == NULL ? "optimizer" : "pattern");
    }
    if (!is_rate_or_inherited(lr)) {
        return fsdpi_fail(optimizer->model->ctx, FSDP_ERR_ARG,
                          "fsdp_optimizer_set_group_lr: %g for '%.100s'; it must be 0 or more, or FSDP_INHERIT", lr,
                          pattern);
    }
    const uint64_t hash = fsdpi_hash_text(FSDPI_HASH_START, pattern);
    for (size_t i = 0; i < optimizer->n_groups; i++) {
        if (optimizer->groups[i].pattern == hash) {
            optimizer->groups[i].own.lr = lr;
            return FSDP_OK;
        }
    }
    return fsdpi_fail(
        optimizer->model->ctx, FSDP_ERR_ARG,
        "fsdp_optimizer_set_group_lr: '%.100s' is none of the %zu groups; give the pattern as it was added", pattern,
        optimizer->n_groups);
}
