/**
 * @file
 * What an optimizer holds, and its groups of tensors.
 */
#ifndef FSDPI_OPTIMIZER_H
#define FSDPI_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/optimizer.h"
#include "shard/model.h"

enum { FSDPI_MOST_STATES = 2 };

/** Of one flat parameter. */
typedef struct fsdpi_flat_state {
    /** As long as its master shard, in the optimizer's moment_dtype. Adam, AdamW: first and second moment; Lion: its moment;
     * SGD: the momentum buffer. */
    void   *moments[FSDPI_MOST_STATES];
    size_t *group; /* of each tensor: its place in `groups`, counted from 1; 0: none */
} fsdpi_flat_state;

/** Patterns are told apart by their hash: kept as text, their length would be no part of a budget known beforehand. */
typedef struct fsdpi_group {
    uint64_t             pattern;
    fsdp_optimizer_group own;
} fsdpi_group;

/** Of a run of elements in the present step. */
typedef struct fsdpi_coefficients {
    fsdpi_adam adam;
    fsdpi_lion lion;
    fsdpi_sgd  sgd;
} fsdpi_coefficients;

/** A place on the GPU for some elements of a flat parameter: see shard/optimizer_device.c. What is not needed is NULL. */
typedef struct fsdpi_piece {
    float          *weights;                    /* offloaded masters */
    float          *moments[FSDPI_MOST_STATES]; /* in f32 */
    uint16_t       *narrow[FSDPI_MOST_STATES];  /* offloaded moments as they are held, in bf16 */
    fsdpi_gpu_event arrived, updated, left;     /* copied in; worked on; copied out */
} fsdpi_piece;

enum { FSDPI_PIECES = 2 };

typedef struct fsdpi_staging {
    void       *memory;
    size_t      bytes;
    size_t      elements; /* of a piece */
    size_t      n_pieces; /* 0: moments in f32 on the GPU need none */
    fsdpi_piece pieces[FSDPI_PIECES];
    size_t      used; /* pieces so far: they take turns */
} fsdpi_staging;

struct fsdp_optimizer {
    fsdp_optimizer        *next;
    fsdp_model            *model;
    fsdp_optimizer_options options;
    size_t                 steps;
    size_t                 n_groups;
    fsdpi_group           *groups;  /* room for as many as the model has tensors: each has one at least */
    fsdpi_staging          staging; /* on a GPU */
    fsdpi_flat_state       flats[]; /* in order of the model's */
};

/** The rate, in the present step, of a group counted from 1; 0: of tensors without a group. */
double fsdpi_group_lr(const fsdp_optimizer *optimizer, size_t group);

/** The weight decay of a group, or without one, for tensors that do not forbid it. */
double fsdpi_group_weight_decay(const fsdp_optimizer *optimizer, size_t group);

/** All rates of the present step, as many as there is room for. Returns a hash of those of groups. */
uint64_t fsdpi_describe_rates(const fsdp_optimizer *optimizer, char *text, size_t size);

/** Works on `count` elements from number `begin` on of what this rank holds of a flat parameter. */
typedef void fsdpi_run_update(const void *what, size_t begin, size_t count, const fsdpi_coefficients *c);

/** Calls `update` for the elements from `begin` up to `end`, in their order, in runs that have one set of coefficients. */
void fsdpi_optimizer_runs(const fsdp_optimizer *optimizer, fsdpi_flat *flat, const fsdpi_flat_state *state,
                          size_t begin, size_t end, fsdpi_run_update *update, const void *what);

/** The step of all flat parameters that are not frozen; all of them have a gradient (shard/optimizer_update.c). */
void fsdpi_optimizer_update(fsdp_optimizer *optimizer);

/* On a GPU (shard/optimizer_device.c). */

/** As fsdpi_optimizer_update(); where masters are offloaded, parameters as they are gathered too. */
void fsdpi_update_on_device(fsdp_optimizer *optimizer);

/** What the step works through. On the host nothing. */
fsdp_status fsdpi_staging_open(fsdp_optimizer *optimizer);
void        fsdpi_staging_close(fsdp_optimizer *optimizer);

/** Whether `value` is one that rates and decays may have. */
bool fsdpi_is_rate(double value);

#endif
