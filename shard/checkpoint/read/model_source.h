/**
 * @file
 * A checkpoint, or a file, as what one model and its optimizers are loaded from. Local, but for the printing of what does not fit.
 */
#ifndef FSDPI_MODEL_SOURCE_H
#define FSDPI_MODEL_SOURCE_H

#include "shard/checkpoint/common/stage_parts.h"
#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/read/source.h"

typedef struct fsdpi_model_source {
    const char              *name; /* in the checkpoint; "": the one without a name */
    fsdp_model              *model;
    fsdp_optimizer          *optimizer; /* NULL: none is loaded; else one of the model's, of which all are */
    const fsdpi_model_state *saved;     /* what state.json says of it; NULL: nothing, as where there is none */
    bool                     is_absent; /* the checkpoint does not have it: it stays as it is */
    fsdpi_source             values, moments;
    fsdpi_stage_parts        value_parts, moment_parts; /* of all stages: see fsdpi_model_source_share() */
} fsdpi_model_source;

/**
 * Asks the other stages of a model what they have, before any file is opened. Collective over the plane of a model that has one.
 * @param[in] status  not FSDP_OK: this rank has failed already, and `problem` says why
 */
fsdp_status fsdpi_model_source_share(fsdpi_model_source *source, const char *function, fsdp_status status,
                                     fsdpi_problem *problem);

/**
 * Finds what was saved of the model, checks that optimizers and loss scaler can take it, and opens the files. A model with a name
 * that the checkpoint does not have is absent, which is no error here.
 *
 * @param[in] path  the checkpoint's folder; or, with `is_folder` false, a file, for the model's values alone
 * @return FSDP_OK; FSDP_ERR_ARG: an optimizer of another kind, or a scale out of range; FSDP_ERR_IO, FSDP_ERR_FORMAT,
 *         FSDP_ERR_MEMORY
 */
fsdp_status fsdpi_model_source_open(fsdpi_model_source *source, const char *path, bool is_folder,
                                    const fsdpi_state *state, fsdpi_problem *problem);

/** Checks what an index of several files says of itself, and the chunks of all headers. `scratch`: FSDPI_READ_BYTES. */
fsdp_status fsdpi_model_source_verify_headers(const fsdpi_model_source *source, const char *path,
                                              const fsdpi_checksums *sums, void *scratch, fsdpi_problem *problem);

/** As fsdpi_source_match(), of values, to which renames apply, and of what optimizers have. A model that is absent is missing. */
fsdp_status fsdpi_model_source_match(fsdpi_model_source *source, const fsdp_checkpoint_load_options *options,
                                     fsdpi_misfits *misfits, fsdpi_problem *problem);

/** As fsdpi_source_verify(). */
fsdp_status fsdpi_model_source_verify(const fsdpi_model_source *source, const fsdpi_checksums *sums, void *scratch,
                                      fsdpi_problem *problem);

/** As fsdpi_source_read(); behind it views and the error feedback of hooks, which are of the former values, are forgotten. */
fsdp_status fsdpi_model_source_read(const fsdpi_model_source *source, void *scratch, fsdpi_problem *problem);

/** Sets the steps of optimizers and the loss scaler's state, behind the reading. */
void fsdpi_model_source_set_counters(const fsdpi_model_source *source);

/** A hash of what the files say of the model and its tensors. */
uint64_t fsdpi_model_source_fingerprint(const fsdpi_model_source *source, uint64_t hash);

/** Closes and frees. A source of zeros is allowed. */
void fsdpi_model_source_close(fsdpi_model_source *source);

#endif
