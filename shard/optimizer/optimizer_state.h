/**
 * @file
 * What an optimizer holds.
 */
#ifndef FSDPI_OPTIMIZER_STATE_H
#define FSDPI_OPTIMIZER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/optimizer.h"
#include "shard/optimizer/optimizer_staging.h"
#include "shard/state/model.h"

enum { FSDPI_STATE_NAME_BYTES = 32 };

/** Of one flat parameter. */
typedef struct fsdpi_flat_state {
    /** As long as its master shard, in the optimizer's moment_dtype. Adam, AdamW: first and second moment; Lion: its moment;
     * SGD: the momentum buffer; FSDP_CUSTOM: its states. */
    void   *moments[FSDPI_MOST_STATES];
    size_t *group; /* of each tensor: its place in `groups`, counted from 1; 0: none */
} fsdpi_flat_state;

/** Patterns are told apart by their hash: kept as text, their length would be no part of a budget known beforehand. */
typedef struct fsdpi_group {
    uint64_t             pattern;
    fsdp_optimizer_group own;
} fsdpi_group;

struct fsdp_optimizer {
    fsdp_optimizer           *next;
    fsdp_model               *model;
    fsdp_optimizer_options    options;
    const fsdpi_tensor_group *group; /* of tensors, which it updates; NULL: those of none */
    size_t                    steps;
    bool                      spoiled; /* its states: a function of the program's has failed on some rank */
    size_t                    updated; /* ELEMENTS in the present step: see shard/optimizer/optimizer_custom.c */
    void                     *scratch; /* NULL: none */
    char                      state_names[FSDP_MAX_STATES][FSDPI_STATE_NAME_BYTES]; /* of FSDP_CUSTOM */
    size_t                    n_groups;
    fsdpi_group              *groups;            /* room for as many as the model has tensors: each has one at least */
    const struct fsdpi_optimizer_steps *by;      /* the host or a GPU */
    fsdpi_staging                       staging; /* on a GPU */
    fsdpi_flat_state                    flats[]; /* in order of the model's */
};

/** How steps are taken: by the host, or by a GPU. */
typedef struct fsdpi_optimizer_steps {
    /** What steps work through. FSDP_ERR_MEMORY, recorded and printed. */
    fsdp_status (*open)(fsdp_optimizer *optimizer);
    void (*close)(fsdp_optimizer *optimizer);
    /** The step of all flat parameters that the optimizer updates; all of them have a gradient. Only a function of the program's
     * may fail: this is local, and recorded for an agreement to print. */
    fsdp_status (*update)(fsdp_optimizer *optimizer);
} fsdpi_optimizer_steps;

/** Whether a flat parameter is the optimizer's. */
static inline bool fsdpi_updates(const fsdp_optimizer *optimizer, const fsdpi_flat *flat)
{
    return !flat->frozen && flat->group == optimizer->group;
}

/** The optimizer that updates a flat parameter; NULL. */
static inline const fsdp_optimizer *fsdpi_optimizer_of(const fsdpi_flat *flat)
{
    const fsdp_optimizer *optimizer = flat->model->optimizers;

    while (optimizer != NULL && !fsdpi_updates(optimizer, flat)) {
        optimizer = optimizer->next;
    }
    return optimizer;
}

extern const fsdpi_optimizer_steps fsdpi_optimizer_host;
/** Where masters are offloaded, it updates parameters as they are gathered too. */
extern const fsdpi_optimizer_steps fsdpi_optimizer_device;

#endif
