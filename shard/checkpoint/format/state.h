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
 *       "checksums": ...
 *     }
 *
 * "sum" is the checksum of this file itself, with zeros in place of its 16 digits. "optimizer" and "loss_scaler" are null where
 * there is none; "optimizer" is that of the tensors of no group. "group_optimizers", those of groups of tensors, is left out where
 * there is none. "world" is for people: it restricts nothing. "checksums" is as shard/checkpoint/format/checksums.h says. Names
 * that a reader does not know are left alone, so that a version can grow; a version that is not known is refused by name.
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

typedef struct fsdpi_state {
    fsdp_checkpoint_state  program;
    char                   strategy[32];
    bool                   has_optimizer;
    char                   optimizer[32]; /* its kind */
    uint64_t               optimizer_steps;
    size_t                 n_group_optimizers;
    fsdpi_group_optimizer  group_optimizers[FSDPI_MOST_GROUP_OPTIMIZERS];
    bool                   has_scaler;
    fsdp_loss_scaler_state scaler;
    fsdpi_checksums        sums;
} fsdpi_state;

/** @param[out] text  which the caller frees. FSDP_ERR_MEMORY; FSDP_ERR_ARG where it would be longer than readers take. */
fsdp_status fsdpi_state_write(const fsdpi_state *state, char **text, size_t *bytes, fsdpi_problem *problem);

/**
 * Reads and checks it, and the chunks of its checksums where these are apart.
 * @param[out] state  its `sums` are released with fsdpi_checksums_free(); zeros after an error
 */
fsdp_status fsdpi_state_read(const char *path, fsdpi_state *state, fsdpi_problem *problem);

/**
 * The same, but for chunks that are apart, of a text in memory, with a NUL behind its `bytes`. The digits of its sum become
 * zeros.
 */
fsdp_status fsdpi_state_parse(const char *path, char *text, size_t bytes, fsdpi_state *state, fsdpi_problem *problem);

#endif
