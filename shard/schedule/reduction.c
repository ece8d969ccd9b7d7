/*
 * Gradient views and their reduction. A view lies in a bucket, which is reduced as a whole: of one unit where flat parameters
 * are divided; where every rank holds them whole, of as many units as are ended one after the other until it is full, the
 * first bucket of a step sooner than the others, so that the link has something to do early (Li et al., PyTorch Distributed,
 * 2020). A unit that has both has views in two buckets. Buckets follow the order in which units really come, so nothing needs
 * to be rebuilt.
 *
 * Reductions are completed in order of issue, and only where the calls say so: when a bucket is needed again and before
 * gradients are looked at. What they give is therefore the same whatever has arrived when.
 */
#include "shard/schedule/reduction.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/hash.h"
#include "shard/hooks/model_hook.h"
#include "shard/schedule/failed_step.h"
#include "shard/state/factor.h"
#include "shard/state/slices.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"

enum { FIRST_BUCKET_BYTES = 1 << 20 };

static const char end_name[] = "fsdp_unit_end_backward";
/* Another name, by which ranks of a group that go differently far tell each other apart before one waits for its replicas. */
static const char end_in_group_name[] = "fsdp_unit_end_backward (FSDP_SYNC_GROUP)";

static size_t width_of(const fsdp_model *model)
{
    return fsdp_dtype_size(model->options.reduce_dtype);
}

/* ---- adding up --------------------------------------------------------------------------------------------------- */

/* What passes without communication have left goes into the view. */
static void add_local(const fsdpi_member *member)
{
    fsdpi_flat      *flat  = member->flat;
    fsdp_model      *model = flat->model;
    const fsdp_dtype dtype = model->options.reduce_dtype;

    fsdpi_compute_accumulate(model, flat->local, false, member->gradient_view, dtype, 1.0, flat->layout.padded);
    fsdpi_compute_cast(model, member->gradient_view, dtype, flat->local, model->master_dtype, flat->layout.padded);
    flat->has_local = false;
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static void free_bucket(fsdpi_bucket *bucket)
{
    *bucket = (fsdpi_bucket){.memory = bucket->memory, .room = bucket->room, .whole = bucket->whole};
}

/* Where this rank's part of a view is. */
static unsigned char *own_part(const fsdpi_member *member)
{
    const fsdpi_flat *flat = member->flat;

    return fsdpi_element_of(member->bucket->memory, member->bucket_offset + fsdpi_held_begin(flat),
                            flat->model->options.reduce_dtype);
}

/*
 * Over groups and then over replicas: sums, which are divided at the end and so give the bits of one reduction; but of f16,
 * whose range is narrow, means of means, as with hooks.
 */
static fsdp_redop stage_op(const fsdp_model *model)
{
    return model->replicas == NULL || model->options.reduce_dtype == FSDP_F16 ? FSDP_AVG : FSDP_SUM;
}

/* Whether what passes leave now is only reduced within the group. */
static bool stays_in_group(const fsdp_model *model)
{
    return model->group_only && model->replicas != NULL;
}

/* The first reduction since the last step may put its result where it is to be. */
static bool lands_at_once(const fsdpi_flat *flat)
{
    const fsdp_model *model = flat->model;

    return !fsdpi_is_whole(flat) && model->options.reduce_dtype == model->master_dtype &&
           fsdpi_factor_of_pass(flat) == 1.0 && model->replicas == NULL && !flat->has_gradient && flat->reducing == 0;
}

static fsdp_status issue_reduce_scatter(fsdpi_member *member)
{
    fsdpi_flat         *flat    = member->flat;
    fsdp_model         *model   = flat->model;
    const fsdpi_purpose purpose = {
        .name = member->bucket->group_only ? end_in_group_name : end_name, .label = flat->name, .reserved = true};
    unsigned char *view = fsdpi_element_of(member->bucket->memory, member->bucket_offset, model->options.reduce_dtype);

    member->landed   = lands_at_once(flat);
    void *const part = member->landed ? flat->gradient : own_part(member);
    if (flat->owners != NULL) {
        return fsdpi_ireduce_scatterv(model->shards, &purpose, view, part, fsdpi_begin_of_rank, flat,
                                      model->options.reduce_dtype, stage_op(model), &member->reducing);
    }
    return fsdpi_ireduce_scatter(model->shards, &purpose, view, part, fsdpi_held_elements(flat),
                                 model->options.reduce_dtype, stage_op(model), &member->reducing);
}

/* The label tells ranks apart whose units came in another order. */
static fsdp_status issue_allreduce(fsdp_model *model, fsdp_context *over, fsdpi_bucket *bucket)
{
    const fsdpi_purpose purpose = {
        .name = bucket->group_only ? end_in_group_name : end_name, .label = bucket->label, .reserved = true};
    const char *last  = "";
    uint64_t    order = FSDPI_HASH_START;
    size_t      n     = 0;

    for (const fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket, n++) {
        last  = member->flat->name;
        order = fsdpi_hash_text(order, last);
    }
    (void)snprintf(bucket->label, sizeof bucket->label, "%zu gradients up to '%s', order %08" PRIx32, n, last,
                   (uint32_t)order);
    return fsdpi_iallreduce(over, &purpose, FSDP_IN_PLACE, bucket->memory, bucket->used, model->options.reduce_dtype,
                            stage_op(model), &bucket->request);
}

/* Over the ranks of `ctx`, this rank's part of each view in the bucket. */
static fsdp_status average_by_hook(fsdp_context *ctx, const fsdpi_bucket *bucket)
{
    for (const fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        FSDP_TRY(fsdpi_hook_average_part(member->flat, ctx, end_name, (float *)(void *)own_part(member)));
    }
    return FSDP_OK;
}

/* Waits for all that is under way for a bucket; the first error counts. */
static fsdp_status wait_for(fsdpi_bucket *bucket)
{
    fsdp_status status = fsdp_wait(bucket->request);

    bucket->request = NULL;
    for (fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        const fsdp_status one = fsdp_wait(member->reducing);

        member->reducing = NULL;
        status           = status != FSDP_OK ? status : one;
    }
    return status;
}

static fsdp_status add_over_replicas(fsdp_model *model, fsdpi_member *member)
{
    const fsdpi_purpose purpose = {.name = end_name, .label = member->flat->name, .reserved = true};

    return fsdpi_iallreduce(model->replicas, &purpose, FSDP_IN_PLACE, own_part(member),
                            fsdpi_held_elements(member->flat), model->options.reduce_dtype, stage_op(model),
                            &member->reducing);
}

/* Hooks see means, which fit into narrow types where sums would not. */
static void divide_by_group(fsdp_model *model, const fsdpi_bucket *bucket)
{
    for (const fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        fsdpi_compute_divide(model, own_part(member), model->options.reduce_dtype, (size_t)model->shards->size,
                             fsdpi_held_elements(member->flat));
    }
}

/* What passes within the group have left goes into this rank's part of the view. */
static void add_partial(const fsdpi_member *member)
{
    fsdpi_flat      *flat  = member->flat;
    fsdp_model      *model = flat->model;
    const fsdp_dtype dtype = model->options.reduce_dtype;
    const size_t     n     = fsdpi_held_elements(flat);

    fsdpi_compute_accumulate(model, flat->gradient, false, own_part(member), dtype, 1.0, n);
    fsdpi_compute_cast(model, own_part(member), dtype, flat->gradient, model->master_dtype, n);
    flat->has_partial = false;
}

static void add_partials(const fsdpi_bucket *bucket)
{
    for (const fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        if (member->flat->has_partial) {
            add_partial(member);
        }
    }
}

/* From the groups to all: sums of groups over the replicas. */
static fsdp_status replicate(fsdp_model *model, fsdpi_bucket *bucket)
{
    if (model->replicas == NULL || bucket->replicated || bucket->group_only) {
        return FSDP_OK;
    }
    bucket->replicated = true;
    FSDP_TRY(wait_for(bucket));
    add_partials(bucket);
    if (model->hook != NULL) {
        divide_by_group(model, bucket);
        return average_by_hook(model->replicas, bucket);
    }
    if (bucket->whole) {
        return issue_allreduce(model, model->replicas, bucket);
    }
    for (fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        FSDP_TRY(add_over_replicas(model, member));
    }
    return FSDP_OK;
}

static void take_partial(const fsdpi_member *member)
{
    fsdpi_flat *flat = member->flat;

    fsdpi_compute_accumulate(flat->model, flat->gradient, !flat->has_partial, own_part(member),
                             flat->model->options.reduce_dtype, 1.0, fsdpi_held_elements(flat));
    flat->has_partial = true;
}

static void take_result(const fsdpi_member *member)
{
    fsdpi_flat      *flat  = member->flat;
    fsdp_model      *model = flat->model;
    const fsdp_dtype dtype = model->options.reduce_dtype;
    unsigned char   *part  = own_part(member);
    const size_t     n     = fsdpi_held_elements(flat);

    if (member->bucket->group_only) {
        take_partial(member);
        return;
    }
    if (stage_op(model) == FSDP_SUM && model->hook == NULL) {
        fsdpi_compute_divide(model, part, dtype, (size_t)model->ctx->size, n);
    }
    if (!member->landed) {
        fsdpi_compute_accumulate(model, flat->gradient, !flat->has_gradient, part, dtype, fsdpi_factor_of_pass(flat),
                                 n);
    }
    flat->has_gradient = true;
    flat->gradient_passes++;
}

/* The oldest bucket becomes free, with its result taken or not. */
static void release_oldest(fsdp_model *model, bool take)
{
    fsdpi_bucket *bucket = model->issued_first;

    model->issued_first = bucket->next;
    for (fsdpi_member *member = bucket->first, *next; member != NULL; member = next) {
        next = member->next_in_bucket;
        if (take) {
            take_result(member);
        }
        member->flat->reducing--;
        member->bucket = NULL;
        member->landed = false;
    }
    free_bucket(bucket);
}

/* Without groups, a hook averages over all ranks, of a model that each of them holds whole. */
static bool is_by_hook_alone(const fsdp_model *model)
{
    return model->hook != NULL && model->shards == model->ctx && !fsdpi_is_hybrid(model->options.strategy);
}

/* Completes the oldest reduction. */
static fsdp_status retire(fsdp_model *model)
{
    fsdpi_bucket     *bucket = model->issued_first;
    fsdp_status       status = replicate(model, bucket);
    const fsdp_status end    = wait_for(bucket);

    status = status != FSDP_OK ? status : end;
    if (status == FSDP_OK && is_by_hook_alone(model)) {
        status = average_by_hook(model->ctx, bucket);
    }
    release_oldest(model, status == FSDP_OK && !bucket->failed);
    status = status != FSDP_OK ? status : fsdpi_compute_status(model);
    fsdpi_error_hand_on(model->replicas != NULL ? model->replicas : model->shards, model->ctx, status);
    return status;
}

static fsdp_status issue_reductions(fsdp_model *model, fsdpi_bucket *bucket)
{
    if (bucket->whole) {
        return is_by_hook_alone(model) ? FSDP_OK : issue_allreduce(model, model->shards, bucket);
    }
    for (fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        FSDP_TRY(issue_reduce_scatter(member));
    }
    return FSDP_OK;
}

static void append(fsdp_model *model, fsdpi_bucket *bucket)
{
    fsdpi_bucket **end = &model->issued_first;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end           = bucket;
    model->filling = model->filling == bucket ? NULL : model->filling;
    model->n_issued++;
}

/* Whether the buckets from this one on can be reduced over the replicas: not where what another leaves has to go into them. */
static bool may_replicate(const fsdpi_bucket *bucket)
{
    return bucket->first->flat->model->hook == NULL && !bucket->group_only;
}

/* Whatever fails, the bucket is among those that are issued, to be waited for. */
static fsdp_status issue(fsdp_model *model, fsdpi_bucket *bucket)
{
    fsdp_status status = issue_reductions(model, bucket);

    bucket->issued = true;
    bucket->failed = status != FSDP_OK;
    for (const fsdpi_member *member = bucket->first; member != NULL; member = member->next_in_bucket) {
        member->flat->reducing++;
        member->flat->over_all = !bucket->group_only;
    }
    append(model, bucket);
    for (fsdpi_bucket *before = model->issued_first; before != bucket && status == FSDP_OK && may_replicate(before);
         before               = before->next) {
        status         = replicate(model, before);
        before->failed = before->failed || status != FSDP_OK;
    }
    FSDP_TRY(status);
    return model->ctx->config.prefetch == 0 ? retire(model) : FSDP_OK;
}

/* ELEMENTS from which on a bucket is reduced. */
static size_t limit_of(const fsdp_model *model)
{
    const size_t first = FIRST_BUCKET_BYTES / width_of(model);

    return model->n_issued == 0 && first < model->plan.bucket ? first : model->plan.bucket;
}

static bool is_full(const fsdp_model *model, const fsdpi_bucket *bucket)
{
    return bucket->closed || model->ctx->config.prefetch == 0 || bucket->used >= limit_of(model);
}

/* The smallest that is free and large enough; NULL. */
static fsdpi_bucket *find_free_bucket(const fsdp_model *model, bool whole, size_t count)
{
    for (size_t i = model->plan.n_buckets; i-- > 0;) {
        fsdpi_bucket *bucket = &model->buckets[i];

        if (!bucket->taken && bucket->whole == whole && bucket->room >= count) {
            return bucket;
        }
    }
    return NULL;
}

/* There is always one once everything under way is completed: for each unit that may be open. */
static fsdp_status take_bucket(fsdp_model *model, bool whole, size_t count, fsdpi_bucket **taken)
{
    fsdpi_bucket *bucket = find_free_bucket(model, whole, count);

    while (bucket == NULL && model->issued_first != NULL) {
        FSDP_TRY(retire(model));
        bucket = find_free_bucket(model, whole, count);
    }
    if (bucket == NULL) {
        (void)fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                         "fsdp_unit_begin_backward: no room for %zu gradients; end other backward passes first", count);
        return FSDP_ERR_STATE;
    }
    bucket->taken      = true;
    bucket->group_only = stays_in_group(model);
    *taken             = bucket;
    return FSDP_OK;
}

/* Whether `count` ELEMENTS more fit in, which are reduced as far as those in it. */
static bool has_room(const fsdp_model *model, const fsdpi_bucket *bucket, size_t count)
{
    return !is_full(model, bucket) && bucket->used + count <= bucket->room && model->syncs &&
           bucket->group_only == stays_in_group(model);
}

/* Room for `count` ELEMENTS: of what is `whole`, in the bucket being filled, if they fit in. */
static fsdp_status find_bucket(fsdp_model *model, bool whole, size_t count, fsdpi_bucket **found)
{
    fsdpi_bucket *bucket = model->filling;

    if (!whole) {
        FSDP_TRY(take_bucket(model, whole, count, found));
        (*found)->closed = true;
        return FSDP_OK;
    }
    if (bucket != NULL && has_room(model, bucket, count)) {
        *found = bucket;
        return FSDP_OK;
    }
    model->filling = NULL;
    if (bucket != NULL) {
        bucket->closed = true;
        if (bucket->open == 0) {
            FSDP_TRY(issue(model, bucket));
        }
    }
    FSDP_TRY(take_bucket(model, whole, count, found));
    (*found)->closed = !model->syncs;
    if (model->syncs) {
        model->filling = *found;
    }
    return FSDP_OK;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* A unit's members with a gradient are two lists: of those that are divided, and of those that every rank holds whole. */
enum { N_LISTS = 2 };

/* The next of one of them, from the unit's member number `m` on; NULL. */
static fsdpi_member *next_trainable(const fsdp_unit *unit, bool whole, size_t m)
{
    while (m < unit->n_members && (unit->members[m].flat->frozen || fsdpi_is_whole(unit->members[m].flat) != whole)) {
        m++;
    }
    return m < unit->n_members ? &unit->members[m] : NULL;
}

static fsdpi_member *first_trainable(const fsdp_unit *unit, bool whole)
{
    return next_trainable(unit, whole, 0);
}

static fsdpi_member *behind(const fsdp_unit *unit, const fsdpi_member *member)
{
    return next_trainable(unit, fsdpi_is_whole(member->flat), (size_t)(member - unit->members) + 1);
}

static void clear_view(const fsdpi_member *member)
{
    fsdp_model *model = member->flat->model;

    fsdpi_compute_clear(model, member->gradient_view, member->flat->layout.padded * width_of(model));
}

static void join_bucket(fsdpi_member *member, fsdpi_bucket *bucket)
{
    fsdp_model *model = member->flat->model;

    member->bucket         = bucket;
    member->bucket_offset  = bucket->used;
    member->gradient_view  = fsdpi_element_of(bucket->memory, bucket->used, model->options.reduce_dtype);
    member->next_in_bucket = NULL;
    if (bucket->last != NULL) {
        bucket->last->next_in_bucket = member;
    } else {
        bucket->first = member;
    }
    bucket->last = member;
    bucket->used += member->flat->layout.padded;
    bucket->open++;
    clear_view(member);
}

static void unlink_member(fsdpi_bucket *bucket, const fsdpi_member *member)
{
    fsdpi_member *before = NULL;

    for (fsdpi_member *other = bucket->first; other != member; other = other->next_in_bucket) {
        before = other;
    }
    if (before != NULL) {
        before->next_in_bucket = member->next_in_bucket;
    } else {
        bucket->first = member->next_in_bucket;
    }
    bucket->last = bucket->last == member ? before : bucket->last;
}

/* Views are added up in the order in which their passes ended, under every strategy. */
static void move_to_end(fsdpi_member *member)
{
    fsdpi_bucket *bucket = member->bucket;

    unlink_member(bucket, member);
    member->next_in_bucket = NULL;
    if (bucket->last != NULL) {
        bucket->last->next_in_bucket = member;
    } else {
        bucket->first = member;
    }
    bucket->last = member;
}

static fsdp_status complete_earlier(const fsdp_unit *unit, const fsdpi_member *member, bool here);

/* A unit's closed views, from a bucket that has to wait for open ones into one of their own, which is reduced. They leave
 * zeros. */
static fsdp_status reduce_apart(fsdp_unit *unit, bool whole)
{
    fsdp_model   *model  = unit->model;
    fsdpi_member *first  = first_trainable(unit, whole);
    fsdpi_bucket *shared = first->bucket, *own;

    for (const fsdpi_member *member = first; member != NULL; member = behind(unit, member)) {
        FSDP_TRY(complete_earlier(unit, member, true));
    }
    FSDP_TRY(take_bucket(model, whole, whole ? unit->whole_gradients : unit->gradients, &own));
    for (fsdpi_member *member = first; member != NULL; member = behind(unit, member)) {
        const size_t   bytes = member->flat->layout.padded * width_of(model);
        unsigned char *view  = fsdpi_element_of(shared->memory, member->bucket_offset, model->options.reduce_dtype);

        unlink_member(shared, member);
        join_bucket(member, own);
        fsdpi_compute_copy(model, member->gradient_view, view, bytes);
        fsdpi_compute_clear(model, view, bytes);
        member->gradient_view = NULL;
        own->open--;
    }
    return issue(model, own);
}

/* A unit comes again: what its last pass left has to be reduced first. */
static fsdp_status complete_last(fsdp_unit *unit, bool whole)
{
    fsdp_model   *model  = unit->model;
    fsdpi_bucket *bucket = first_trainable(unit, whole)->bucket;

    if (bucket->issued) {
        return retire(model);
    }
    return bucket->open == 0 ? issue(model, bucket) : reduce_apart(unit, whole);
}

/* Whether the gradient that an ended pass of `other` has left waits in a bucket: in that of `member` before it, or elsewhere. */
static bool waits_earlier(const fsdpi_member *other, const fsdpi_member *member, bool here)
{
    if (other->flat != member->flat || other->bucket == NULL || other->bucket->issued || other->gradient_view != NULL ||
        (other->bucket == member->bucket) != here) {
        return false;
    }
    while (here && other != NULL && other != member) {
        other = other->next_in_bucket;
    }
    return !here || other == member;
}

/* What other units have left of a tensor that this one shares with them is reduced before what this one leaves. */
static fsdp_status complete_earlier(const fsdp_unit *unit, const fsdpi_member *member, bool here)
{
    const bool whole = fsdpi_is_whole(member->flat);

    if (!member->flat->tensors[0]->shared) {
        return FSDP_OK;
    }
    for (fsdp_unit *other = unit->model->first; other != NULL; other = other->next) {
        for (const fsdpi_member *m = first_trainable(other, whole); m != NULL && other != unit; m = behind(other, m)) {
            if (waits_earlier(m, member, here)) {
                FSDP_TRY(complete_last(other, whole));
                break;
            }
        }
    }
    return FSDP_OK;
}

static fsdp_status open_list(fsdp_unit *unit, bool whole)
{
    fsdpi_member *first = first_trainable(unit, whole);
    fsdpi_bucket *bucket;

    if (first == NULL) {
        return FSDP_OK;
    }
    while (first->bucket != NULL) {
        FSDP_TRY(complete_last(unit, whole));
    }
    FSDP_TRY(find_bucket(unit->model, whole, whole ? unit->whole_gradients : unit->gradients, &bucket));
    for (fsdpi_member *member = first; member != NULL; member = behind(unit, member)) {
        join_bucket(member, bucket);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_gradient_open(fsdp_unit *unit)
{
    for (int list = 0; list < N_LISTS; list++) {
        FSDP_TRY(open_list(unit, list != 0));
    }
    return fsdpi_compute_status(unit->model);
}

static void keep_local(fsdp_unit *unit, fsdpi_member *first)
{
    const fsdp_dtype dtype = unit->model->options.reduce_dtype;

    free_bucket(first->bucket); /* nobody else is in it */
    for (fsdpi_member *member = first; member != NULL; member = behind(unit, member)) {
        fsdpi_flat *flat = member->flat;

        fsdpi_compute_accumulate(unit->model, flat->local, !flat->has_local, member->gradient_view, dtype, 1.0,
                                 flat->layout.padded);
        flat->has_local = true;
        member->bucket  = NULL;
    }
}

/* Takes the unit's open views out of their bucket, where they leave zeros. */
static void withdraw(fsdp_unit *unit, bool whole)
{
    fsdp_model   *model  = unit->model;
    fsdpi_member *first  = first_trainable(unit, whole);
    fsdpi_bucket *bucket = first != NULL && first->gradient_view != NULL ? first->bucket : NULL;

    for (fsdpi_member *member = first; member != NULL && bucket != NULL; member = behind(unit, member)) {
        clear_view(member);
        unlink_member(bucket, member);
        member->bucket        = NULL;
        member->gradient_view = NULL;
        bucket->open--;
    }
    if (bucket != NULL && bucket->first == NULL) {
        model->filling = model->filling == bucket ? NULL : model->filling;
        free_bucket(bucket);
    }
}

/* Blocking: this rank's bad call, of which the others learn. */
static fsdp_status refuse(fsdp_unit *unit, fsdp_status status)
{
    fsdp_model         *model   = unit->model;
    const fsdpi_member *first   = first_trainable(unit, !model->divides);
    const fsdpi_purpose purpose = {
        .name = end_name, .label = first != NULL ? first->flat->name : unit->name, .status = status};

    for (int list = 0; list < N_LISTS; list++) {
        withdraw(unit, list != 0);
    }
    fsdpi_error_hand_on(model->ctx, model->shards, status);
    status =
        fsdpi_reduce_scatter(model->shards, &purpose, NULL, NULL, first != NULL ? fsdpi_common_count(first->flat) : 0,
                             model->options.reduce_dtype, FSDP_AVG);
    fsdpi_error_hand_on(model->shards, model->ctx, status);
    return status;
}

static fsdp_status close_list(fsdp_unit *unit, bool whole)
{
    fsdp_model   *model = unit->model;
    fsdpi_member *first = first_trainable(unit, whole);

    if (first == NULL) {
        return FSDP_OK;
    }
    if (!model->syncs) {
        keep_local(unit, first);
        return fsdpi_compute_status(model);
    }
    fsdpi_bucket *bucket = first->bucket;
    for (fsdpi_member *member = first; member != NULL; member = behind(unit, member)) {
        FSDP_TRY(complete_earlier(unit, member, false));
        if (member->flat->has_local) {
            add_local(member);
        }
        move_to_end(member);
        bucket->open--;
    }
    return bucket->open == 0 && is_full(model, bucket) ? issue(model, bucket) : FSDP_OK;
}

/* The place of partial sums is that of the gradient. */
static fsdp_status check_group_only(const fsdp_unit *unit)
{
    const fsdp_model *model = unit->model;

    for (size_t m = 0; m < unit->n_members && stays_in_group(model); m++) {
        const fsdpi_flat *flat = unit->members[m].flat;

        if (flat->over_all) {
            return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                              "%s: unit '%s' has gradients that were reduced over all ranks in this step, and "
                              "FSDP_SYNC_GROUP is set; set FSDP_SYNC_ALL from a unit's first such pass to the step",
                              end_name, flat->name);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_gradient_close(fsdp_unit *unit, fsdp_status status)
{
    status = status == FSDP_OK && unit->model->syncs ? check_group_only(unit) : status;
    if (status != FSDP_OK) {
        return refuse(unit, status);
    }
    for (int list = 0; list < N_LISTS; list++) {
        FSDP_TRY(close_list(unit, list != 0));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_gradients_settle(fsdp_model *model, const char *function)
{
    fsdp_status   status  = fsdpi_step_check(model, function);
    fsdpi_bucket *filling = model->filling;

    if (status == FSDP_OK && filling != NULL && filling->open == 0) {
        status = issue(model, filling);
    }
    while (model->issued_first != NULL && status == FSDP_OK) {
        status = retire(model);
    }
    return fsdpi_step_fail(model, status);
}

static void leave_bucket(fsdpi_member *member)
{
    member->bucket         = NULL;
    member->gradient_view  = NULL;
    member->landed         = false;
    member->flat->reducing = 0;
}

fsdp_status fsdpi_gradients_abandon(fsdp_model *model)
{
    fsdp_status status = FSDP_OK;

    for (size_t i = 0; i < model->plan.n_buckets; i++) {
        const fsdp_status one = wait_for(&model->buckets[i]);

        status = status != FSDP_OK ? status : one;
        free_bucket(&model->buckets[i]);
    }
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t m = 0; m < unit->n_members; m++) {
            leave_bucket(&unit->members[m]);
        }
    }
    model->filling      = NULL;
    model->issued_first = NULL;
    return status;
}

void fsdpi_gradient_forget(fsdpi_flat *flat)
{
    flat->has_gradient    = false;
    flat->has_local       = false;
    flat->has_partial     = false;
    flat->over_all        = false;
    flat->divided         = false;
    flat->gradient_passes = 0;
    flat->checked_passes  = 0;
}

static bool has_any(const fsdp_model *model)
{
    const fsdpi_flat *flat = model->flats;

    while (flat != NULL && !flat->has_gradient && !flat->has_local && !flat->has_partial) {
        flat = flat->next;
    }
    return flat != NULL;
}

void fsdpi_order_forget(fsdp_model *model)
{
    model->n_issued     = 0;
    model->order        = FSDPI_HASH_START;
    model->step_divisor = has_any(model) ? model->step_divisor : 0.0; /* other optimizers have theirs */
}

void fsdpi_gradients_forget(fsdp_model *model)
{
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        fsdpi_gradient_forget(flat);
    }
    fsdpi_order_forget(model);
}
