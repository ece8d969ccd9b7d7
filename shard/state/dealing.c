/*
 * Whole tensors dealt to ranks. As every tensor costs something, the first of them go to ranks that have none yet, so no more
 * ranks than there are tensors ever come into play: these are in a heap, the one that has least on top, of equal ones the one
 * that comes first.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "fsdp/layout.h"
#include "lib/base/error.h"

double fsdp_tensor_cost(size_t n_dims, const size_t *shape, int matrix)
{
    double rows = n_dims > 0 ? (double)shape[0] : 1.0, columns = 1.0;

    for (size_t d = 1; d < n_dims; d++) {
        columns *= (double)shape[d];
    }
    if (!matrix || n_dims < 2) {
        return rows * columns;
    }
    const double least = rows < columns ? rows : columns;
    return 15.0 * least * rows * columns;
}

typedef struct tensor {
    double cost;
    size_t number;
} tensor;

typedef struct load {
    double cost;
    size_t number; /* of the ranks that come into play */
} load;

/* The costliest first, of equal ones in their own order. */
static int compare(const void *a, const void *b)
{
    const tensor *x = a, *y = b;

    if (x->cost != y->cost) {
        return x->cost > y->cost ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

static int has_less(const load *a, const load *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->number < b->number);
}

/* The top has become larger. */
static void sink(load *heap, size_t n)
{
    size_t at = 0;

    for (size_t child = 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && has_less(&heap[child + 1], &heap[child]);
        if (has_less(&heap[at], &heap[child])) {
            return;
        }
        const load above = heap[at];
        heap[at]         = heap[child];
        heap[child]      = above;
        at               = child;
    }
}

static void deal(tensor *tensors, size_t n, load *heap, size_t n_loads, int size, int *owners)
{
    for (size_t i = 0; i < n_loads; i++) {
        heap[i] = (load){.number = i};
    }
    qsort(tensors, n, sizeof *tensors, compare);
    for (size_t i = 0; i < n; i++) {
        owners[tensors[i].number] = (int)(heap[0].number * (uint64_t)size / n_loads);
        heap[0].cost += tensors[i].cost;
        sink(heap, n_loads);
    }
}

static fsdp_status check(size_t n_tensors, const double *costs, int size, const int *owners)
{
    if (size < 1) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_deal_tensors: %d ranks; there must be at least 1", size);
    }
    if (n_tensors > 0 && (costs == NULL || owners == NULL)) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_deal_tensors: the %s are NULL", costs == NULL ? "costs" : "owners");
    }
    for (size_t i = 0; i < n_tensors; i++) {
        if (!(isfinite(costs[i]) && costs[i] > 0.0)) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_deal_tensors: tensor %zu costs %g; it must be above 0", i,
                              costs[i]);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdp_deal_tensors(size_t n_tensors, const double *costs, int size, int *owners)
{
    FSDP_TRY(check(n_tensors, costs, size, owners));
    if (n_tensors == 0) {
        return FSDP_OK;
    }
    const size_t n_loads = n_tensors < (size_t)size ? n_tensors : (size_t)size;
    tensor      *tensors = calloc(n_tensors, sizeof *tensors);
    load        *heap    = calloc(n_loads, sizeof *heap);
    fsdp_status  status  = FSDP_OK;

    if (tensors == NULL || heap == NULL) {
        status = fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_deal_tensors: no memory to deal %zu tensors", n_tensors);
    } else {
        for (size_t i = 0; i < n_tensors; i++) {
            tensors[i] = (tensor){.cost = costs[i], .number = i};
        }
        deal(tensors, n_tensors, heap, n_loads, size, owners);
    }
    free(heap);
    free(tensors);
    return status;
}
