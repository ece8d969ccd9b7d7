#include "fsdp/grouping.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/device/memory.h"
#include "shard/state/failed_add.h"

static fsdp_status check_pointers(const char *function, const fsdp_tensor *tensors, size_t n, const size_t *first,
                                  const size_t *n_groups)
{
    return (tensors == NULL && n > 0) || first == NULL || n_groups == NULL
               ? fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the %s NULL", function,
                            tensors == NULL && n > 0 ? "tensors are" : "place for the groups is")
               : FSDP_OK;
}

/* ---- by size ----------------------------------------------------------------------------------------------------- */

/* SIZE_MAX stands for all that is larger: fsdp_unit_add() refuses such tensors. */
static size_t sum_of(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static size_t elements_of(const fsdp_tensor *tensor)
{
    size_t n = 1;

    for (size_t d = 0; d < tensor->n_dims; d++) {
        if (!fsdpi_multiply(n, tensor->shape[d], &n)) {
            return SIZE_MAX;
        }
    }
    return n;
}

fsdp_status fsdp_group_by_size(const fsdp_tensor *tensors, size_t n, size_t min_elements, size_t *first,
                               size_t *n_groups)
{
    size_t groups = 0, elements = min_elements; /* a group that is full makes the first tensor begin one */

    FSDP_TRY(check_pointers("fsdp_group_by_size", tensors, n, first, n_groups));
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].n_dims > FSDP_MAX_DIMS) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG,
                              "fsdp_group_by_size: tensor %zu has %zu dimensions; at most %d are "
                              "possible",
                              i, tensors[i].n_dims, FSDP_MAX_DIMS);
        }
        if (elements >= min_elements) {
            first[groups++] = i;
            elements        = 0;
        }
        elements = sum_of(elements, elements_of(&tensors[i]));
    }
    *n_groups = groups;
    return FSDP_OK;
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

static fsdp_status check_pattern(const char *pattern)
{
    if (pattern == NULL || pattern[0] == '\0') {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_group_by_name: the pattern is %s; use one as \"h.*.\"",
                          pattern == NULL ? "NULL" : "empty");
    }
    for (const char *star = strchr(pattern, '*'); star != NULL; star = strchr(star + 1, '*')) {
        if (star[1] != '.' && star[1] != '\0') {
            return fsdpi_fail(NULL, FSDP_ERR_ARG,
                              "fsdp_group_by_name: in the pattern '%.200s' a '*' is followed by '%c'; only '.' or the "
                              "end can follow it",
                              pattern, star[1]);
        }
    }
    return FSDP_OK;
}

/* BYTES of the instance of the pattern that the name begins with; 0 where it does not match. */
static size_t matched_bytes(const char *name, const char *pattern)
{
    const char *at = name;

    for (; *pattern != '\0'; pattern++) {
        const size_t step = *pattern == '*' ? strcspn(at, ".") : *at == *pattern;

        if (step == 0) {
            return 0;
        }
        at += step;
    }
    return (size_t)(at - name);
}

static bool same_group(const char *a, const char *b, const char *pattern)
{
    const size_t matched = matched_bytes(a, pattern);

    return matched == matched_bytes(b, pattern) && strncmp(a, b, matched) == 0;
}

fsdp_status fsdp_group_by_name(const fsdp_tensor *tensors, size_t n, const char *pattern, size_t *first,
                               size_t *n_groups)
{
    size_t groups = 0;

    FSDP_TRY(check_pointers("fsdp_group_by_name", tensors, n, first, n_groups));
    FSDP_TRY(check_pattern(pattern));
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].name == NULL) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_group_by_name: tensor %zu has no name", i);
        }
        if (i == 0 || !same_group(tensors[i - 1].name, tensors[i].name, pattern)) {
            first[groups++] = i;
        }
    }
    *n_groups = groups;
    return FSDP_OK;
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* A run of a list of tensors, and that list. */
typedef struct group {
    const fsdp_tensor *tensors;
    size_t             n;
    size_t             begin, end;
} group;

static fsdp_status check_groups(fsdp_model *model, const fsdp_tensor *tensors, size_t n, const size_t *first,
                                size_t n_groups, fsdp_unit *const *units)
{
    if (tensors == NULL || first == NULL || units == NULL || n_groups == 0) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_ARG,
            "fsdp_units_add_grouped: %zu groups, or a NULL pointer; pass tensors, at least one group, and "
            "a place for the units",
            n_groups);
    }
    for (size_t g = 0; g < n_groups; g++) {
        const size_t least = g == 0 ? 0 : first[g - 1] + 1;

        if (first[g] < least || first[g] >= n || (g == 0 && first[g] != 0)) {
            return fsdpi_fail(
                model->ctx, FSDP_ERR_ARG,
                "fsdp_units_add_grouped: group %zu begins with tensor %zu of %zu; groups begin with tensor "
                "0 and increase",
                g, first[g], n);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].name == NULL) {
            return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_units_add_grouped: tensor %zu has no name", i);
        }
    }
    return FSDP_OK;
}

/* BYTES before the last '.' among the first `n` of a name; 0 without one. */
static size_t before_last_dot(const char *name, size_t n)
{
    while (n > 0 && name[n - 1] != '.') {
        n--;
    }
    return n > 0 ? n - 1 : 0;
}

/* BYTES of the components that all names of the group begin with. */
static size_t common_bytes(const group *g)
{
    const char *name   = g->tensors[g->begin].name;
    size_t      common = strlen(name);

    for (size_t i = g->begin + 1; i < g->end; i++) {
        size_t same = 0;

        while (same < common && name[same] == g->tensors[i].name[same]) {
            same++;
        }
        common = same;
    }
    return before_last_dot(name, common);
}

static bool belongs_to_others_too(const group *g, const char *name, size_t bytes)
{
    for (size_t i = 0; i < g->n; i++) {
        const char *other = g->tensors[i].name;

        if ((i < g->begin || i >= g->end) && strncmp(other, name, bytes) == 0 &&
            (other[bytes] == '.' || other[bytes] == '\0')) {
            return true;
        }
    }
    return false;
}

static fsdp_status add_group(fsdp_model *model, const group *g, fsdp_unit **unit)
{
    const char  *first_name = g->tensors[g->begin].name;
    const size_t common     = common_bytes(g);
    char         name[FSDPI_NAME_BYTES];

    if (common == 0 || common >= sizeof name || belongs_to_others_too(g, first_name, common)) {
        return fsdp_unit_add(model, first_name, &g->tensors[g->begin], g->end - g->begin, unit);
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)common, first_name);
    return fsdp_unit_add(model, name, &g->tensors[g->begin], g->end - g->begin, unit);
}

fsdp_status fsdp_units_add_grouped(fsdp_model *model, const fsdp_tensor *tensors, size_t n, const size_t *first,
                                   size_t n_groups, fsdp_unit **units)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_units_add_grouped: the model is NULL; pass one from fsdp_model_create");
    }
    const fsdp_status status = check_groups(model, tensors, n, first, n_groups, units);
    if (status != FSDP_OK || tensors == NULL || first == NULL || units == NULL) {
        return fsdpi_remember_failed_add(model, status);
    }
    for (size_t g = 0; g < n_groups; g++) {
        const group run = {tensors, n, first[g], g + 1 < n_groups ? first[g + 1] : n};

        FSDP_TRY(add_group(model, &run, &units[g]));
    }
    return FSDP_OK;
}
