/*
 * A model's whole tensors are dealt by cost to the ranks that share a copy of it; a rank that holds several slices puts one
 * tensor after the other into each of them in turn, as which of them it is makes a difference to files only.
 */
#include "shard/state/dealt.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "shard/state/flat.h"
#include "shard/state/layout.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/tensor.h"
#include "shard/state/tensor_groups.h"

/* ---- dealing ----------------------------------------------------------------------------------------------------- */

typedef struct dealt {
    fsdpi_tensor *tensor;
    size_t        number; /* in the model */
    int           rank;   /* of those that share a copy */
} dealt;

/* In order of ranks, and of the model. `tensors` is NULL where there are none. */
typedef struct dealing {
    size_t n;
    dealt *tensors;
} dealing;

/* Those that work on a tensor as on many numbers; all others are for matrices. */
static bool is_by_element(fsdp_optimizer_kind kind)
{
    return kind == FSDP_SGD || kind == FSDP_SGD_MOMENTUM || kind == FSDP_ADAM || kind == FSDP_ADAMW ||
           kind == FSDP_LION;
}

static size_t list(const fsdp_model *model, dealt *tensors, double *costs)
{
    size_t n = 0;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            fsdpi_tensor *tensor = &unit->tensors[i];

            if (fsdpi_is_dealt(tensor) && tensors != NULL && costs != NULL) {
                tensors[n] = (dealt){.tensor = tensor, .number = n};
                costs[n] =
                    fsdp_tensor_cost(tensor->n_dims, tensor->shape, !is_by_element(tensor->group->own.optimizer));
            }
            n += fsdpi_is_dealt(tensor);
        }
    }
    return n;
}

static int compare(const void *a, const void *b)
{
    const dealt *x = a, *y = b;

    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

static fsdp_status deal(const fsdp_model *model, int ranks, dealing *d)
{
    *d = (dealing){.n = list(model, NULL, NULL)};
    if (d->n == 0) {
        return FSDP_OK;
    }
    double     *costs  = calloc(d->n, sizeof *costs);
    int        *owners = calloc(d->n, sizeof *owners);
    fsdp_status status = FSDP_ERR_MEMORY;

    d->tensors = calloc(d->n, sizeof *d->tensors);
    if (costs != NULL && owners != NULL && d->tensors != NULL) {
        (void)list(model, d->tensors, costs);
        status = fsdp_deal_tensors(d->n, costs, ranks, owners);
    }
    for (size_t i = 0; i < d->n && status == FSDP_OK; i++) {
        d->tensors[i].rank = owners[i];
    }
    free(costs);
    free(owners);
    if (status != FSDP_OK) {
        free(d->tensors);
        *d = (dealing){0};
        return fsdpi_fail(model->ctx, status, "no memory to deal the model's whole tensors to %d ranks", ranks);
    }
    qsort(d->tensors, d->n, sizeof *d->tensors, compare);
    return FSDP_OK;
}

fsdp_status fsdpi_deal_model(fsdp_model *model)
{
    const int slices = model->ctx->size / model->shards->size; /* that each rank holds */
    int       turn   = 0;
    dealing   d;

    FSDP_TRY(deal(model, model->shards->size, &d));
    for (size_t i = 0; i < d.n; i++) {
        turn                       = i > 0 && d.tensors[i].rank == d.tensors[i - 1].rank ? (turn + 1) % slices : 0;
        d.tensors[i].tensor->dealt = d.tensors[i].rank * slices + turn;
    }
    free(d.tensors);
    return FSDP_OK;
}

/* ---- what ranks hold of them ------------------------------------------------------------------------------------- */

typedef struct holding {
    size_t elements, low_bytes, state_bytes;
} holding;

/* Where a rank holds nothing of a flat parameter, what it has of that still begins in its memory. */
enum { SPARE = FSDP_TENSOR_ALIGNMENT };

/* `before`: ELEMENTS that the rank has of the same flat parameter already. */
static void add(const fsdpi_tensor *tensor, size_t before, holding *h)
{
    const fsdp_model       *model = tensor->unit->model;
    const fsdp_model_group *group = &tensor->group->own;
    const size_t            width = fsdp_dtype_size(fsdpi_gathered_dtype(model, tensor));
    const size_t            n     = fsdpi_padded_tensor(tensor);

    h->elements += n;
    h->low_bytes += fsdpi_has_low(model, width) ? n * width : 0;
    h->state_bytes += fsdpi_states_held(group, before + n) - fsdpi_states_held(group, before);
}

/* ELEMENTS of tensors before number `i` that are in its flat parameter, and on the same rank. */
static size_t elements_before(const dealing *d, size_t i)
{
    const fsdpi_tensor *tensor = d->tensors[i].tensor;
    size_t              n      = 0;

    while (i-- > 0 && d->tensors[i].rank == d->tensors[i + 1].rank && d->tensors[i].tensor->unit == tensor->unit) {
        n += fsdpi_go_together(d->tensors[i].tensor, tensor) ? fsdpi_padded_tensor(d->tensors[i].tensor) : 0;
    }
    return n;
}

static size_t bytes_of(const fsdp_model *model, const holding *h)
{
    return 2 * h->elements * fsdpi_master_width(model) + h->low_bytes + h->state_bytes;
}

static void keep_larger(const fsdp_model *model, const holding *one, int rank, holding *most, int *which)
{
    if (bytes_of(model, one) > bytes_of(model, most)) {
        *most  = *one;
        *which = rank;
    }
}

static holding mean_of(const holding *all, size_t ranks)
{
    return (holding){.elements    = (all->elements + ranks - 1) / ranks,
                     .low_bytes   = (all->low_bytes + ranks - 1) / ranks,
                     .state_bytes = (all->state_bytes + ranks - 1) / ranks};
}

/* All that the plan asks for; `*which` is the rank that holds most, of those that share a copy. */
static void measure(const fsdp_model *model, const dealing *d, const fsdpi_plan *plan, int rank, holding *asked,
                    size_t *longest, int *which)
{
    holding all = {0}, most = {0}, one = {0}, own = {0};
    int     last = -1;

    *longest = 0;
    *which   = 0;
    for (size_t i = 0; i < d->n; i++) {
        const fsdpi_tensor *tensor = d->tensors[i].tensor;

        if (fsdpi_tensor_strategy(tensor, plan) == FSDP_NO_SHARD) {
            continue; /* every rank holds it */
        }
        if (d->tensors[i].rank != last) {
            keep_larger(model, &one, last, &most, which);
            one  = (holding){0};
            last = d->tensors[i].rank;
        }
        const size_t before = elements_before(d, i), slice = before + fsdpi_padded_tensor(tensor);
        add(tensor, before, &one);
        add(tensor, before, &all);
        *longest = slice > *longest ? slice : *longest;
        own      = last == rank ? one : own;
    }
    keep_larger(model, &one, last, &most, which);
    *asked = rank == FSDPI_MEAN_RANK ? mean_of(&all, (size_t)plan->group) : rank == FSDPI_LARGEST_RANK ? most : own;
}

fsdp_status fsdpi_plan_dealt(const fsdp_model *model, int rank, fsdpi_plan *plan)
{
    holding h;
    size_t  longest;
    int     which;
    dealing d;

    FSDP_TRY(deal(model, plan->group, &d));
    measure(model, &d, plan, rank, &h, &longest, &which);
    free(d.tensors);
    if (longest == 0) {
        return FSDP_OK;
    }
    plan->held += h.elements + SPARE;
    plan->held_trainable += h.elements + SPARE;
    plan->low_bytes += h.low_bytes + SPARE * sizeof(double);
    plan->state_bytes += h.state_bytes;
    plan->longest = longest > plan->longest ? longest : plan->longest;
    return FSDP_OK;
}

/* A rank of those that share a copy. */
static bool is_on_this_node(const fsdp_model *model, int rank)
{
    const fsdpi_nodes *nodes = &model->shards->nodes;

    return fsdpi_is_on_node(nodes, rank);
}

void fsdpi_describe_dealt(const fsdp_model *model, const fsdpi_plan *plan, int rank, char *text, size_t size)
{
    const fsdpi_tensor *longest = NULL;
    holding             h;
    size_t              unused;
    int                 which = rank, of = 0;
    dealing             d;

    text[0] = '\0';
    if (deal(model, plan->group, &d) != FSDP_OK) {
        return;
    }
    if (rank == FSDPI_LARGEST_RANK) {
        measure(model, &d, plan, rank, &h, &unused, &which);
    }
    for (size_t i = 0; i < d.n; i++) {
        const fsdpi_tensor *tensor = d.tensors[i].tensor;

        if (rank == FSDPI_RANKS_OF_NODE ? !is_on_this_node(model, d.tensors[i].rank) : d.tensors[i].rank != which) {
            continue;
        }
        if (longest == NULL || tensor->count > longest->count) {
            longest = tensor;
            of      = d.tensors[i].rank;
        }
    }
    if (longest != NULL) {
        (void)snprintf(text, size, "; rank %d has whole tensor '%.255s' of %zu elements", of, longest->name,
                       longest->count);
    }
    free(d.tensors);
}
