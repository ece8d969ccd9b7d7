/**
 * @file
 * state.json: what a checkpoint has beside tensors.
 *
 *     {
 *       "format": "libfsdp checkpoint",
 *       "version": 1,
 *       "sum": "91a1f5c2b7e35d08",
 *       "step": 500, "epoch": 0, "sample": 12000, "seed": 1,
 *       "text": "what the program keeps",
 *       "world": {"ranks": 4, "strategy": "FULL_SHARD"},
 *       "optimizer": {"kind": "adamw", "steps": 500},
 *       "group_optimizers": [{"group": "*.weight", "kind": "lion", "steps": 500}],
 *       "loss_scaler": {"scale": 65536, "clean_steps": 12, "skipped_steps": 3},
 *       "models": [{"name": "critic", "strategy": "NO_SHARD", "optimizer": ..., "group_optimizers": ..., "loss_scaler": ...}],
 *       "checksums": ...
 *     }
 *
 * "sum" is the checksum of this file itself, with zeros in place of its 16 digits. "optimizer" and "loss_scaler" are null where
 * there is none; "optimizer" is that of the tensors of no group. "group_optimizers", those of groups of tensors, is left out where
 * there is none. "world" is for people: it restricts nothing. "models" are those with names; it is left out where there is none. What
 * stands outside it is of the model without a name, if there is one. "checksums" is as shard/checkpoint/format/checksums.h says.
 * Names that a reader does not know are left alone, so that a version can grow; a version that is not known is refused by name.
 */
#ifndef FSDPI_STATE_H
#define FSDPI_STATE_H

#include <stdbool.h>

#include "fsdp/checkpoint.h"
#include "fsdp/loss_scaler.h"
#include "shard/checkpoint/format/checksums.h"
#include "shard/checkpoint/format/problem.h"

#define FSDPI_STATE_FILE "state.json"
/** 1 has the chunks of all files in it; 3 has what 2 does not know: sums that add up. Written is the least that says it all. */
#define FSDPI_STATE_VERSION 3u

/**
 * BYTES that a state.json may have: in version 1, 2 million chunks. Who reads it holds some six times as much while it is taken
 * apart, and 24 bytes of each chunk behind that.
 */
#define FSDPI_STATE_MOST ((size_t)64 << 20)

/** Optimizers of groups that a checkpoint can hold. */
enum { FSDPI_MOST_GROUP_OPTIMIZERS = 32 };

typedef struct fsdpi_group_optimizer {
    char     group[256]; /* its pattern */
    char     kind[32];
    uint64_t steps;
} fsdpi_group_optimizer;

/** Models with a name that a checkpoint can hold. */
enum { FSDPI_MOST_NAMED_MODELS = 256 };

/** What is saved of a model beside its tensors. */
typedef struct fsdpi_model_state {
    struct fsdpi_model_state *next;
    char                      name[FSDP_CHECKPOINT_NAME_BYTES]; /* "": the one without a name */
    char                      strategy[32];
    bool                      has_optimizer;
    char                      optimizer[32]; /* its kind */
    uint64_t                  optimizer_steps;
    size_t                    n_group_optimizers;
    fsdpi_group_optimizer     group_optimizers[FSDPI_MOST_GROUP_OPTIMIZERS];
    bool                      has_scaler;
    fsdp_loss_scaler_state    scaler;
} fsdpi_model_state;

typedef struct fsdpi_state {
    fsdp_checkpoint_state program;
    /**
     * To be written: any, of different names; the one without a name comes first, if there is one. Of a file that has been read
     * that one always comes first: it cannot be told here whether there is one.
     */
    fsdpi_model_state *models;
    fsdpi_checksums    sums;
} fsdpi_state;

/** @param[out] text  which the caller frees. FSDP_ERR_MEMORY; FSDP_ERR_ARG where it would be longer than readers take. */
fsdp_status fsdpi_state_write(const fsdpi_state *state, char **text, size_t *bytes, fsdpi_problem *problem);

/**
 * Reads and checks it, and the chunks of its checksums where these are apart.
 * @param[out] state  released with fsdpi_state_free(); zeros after an error
 */
fsdp_status fsdpi_state_read(const char *path, fsdpi_state *state, fsdpi_problem *problem);

/**
 * The same, but for chunks that are apart, of a text in memory, with a NUL behind its `bytes`. The digits of its sum become
 * zeros.
 */
fsdp_status fsdpi_state_parse(const char *path, char *text, size_t bytes, fsdpi_state *state, fsdpi_problem *problem);

/** Frees what has been read, and leaves zeros. */
void fsdpi_state_free(fsdpi_state *state);

/** What was saved of the model of a name; NULL: nothing. */
const fsdpi_model_state *fsdpi_state_model(const fsdpi_state *state, const char *name);

/** Whether a checkpoint has been written with the tensors of a stem, in one file or in several: by its checksums. */
bool fsdpi_state_has_files(const fsdpi_state *state, const char *stem);

/** "'actor', 'critic'": the models with a name, as far as they have room in `text`; "none". Returns `text`. */
const char *fsdpi_state_names(const fsdpi_state *state, char *text, size_t size);

#endif
