/**
 * @file
 * What a checkpoint that is open knows of one model that it saves: its files, what this rank writes of them, and what state.json
 * says of it. A checkpoint has a list of these: the one without a name first, if there is one, then those with names, in the order
 * in which they were added. Their files are numbered through.
 */
#ifndef FSDPI_SAVED_MODEL_H
#define FSDPI_SAVED_MODEL_H

#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/write/writer.h"

typedef struct fsdpi_saved_model {
    struct fsdpi_saved_model *next;
    fsdp_context             *ctx;
    fsdp_model               *model;
    fsdp_optimizer           *optimizer;    /* NULL: none; else one of the model's, of which all are saved */
    size_t                    n_optimizers; /* that the model had when it was taken */
    const fsdp_hook          *hook;         /* and its gradient hook, which may be gone by now */
    bool                      hook_is_saved;
    fsdpi_stem                stems[FSDPI_N_STEMS];
    fsdpi_writer              writer;
    fsdpi_model_state         state; /* with its name; the rest as fsdpi_saved_model_describe() has left it */
} fsdpi_saved_model;

/**
 * What is wrong with a model or its optimizer before any file is thought of; for `function`, the public one that asks. Local.
 * @return FSDP_OK; recorded, for an agreement, FSDP_ERR_STATE: not committed; FSDP_ERR_ARG: an optimizer of another model, a
 *         name that is not UTF-8; FSDP_ERR_UNSUPPORTED: more optimizers than a checkpoint holds
 */
fsdp_status fsdpi_saved_model_check(fsdp_model *model, const fsdp_optimizer *optimizer, const char *function);

/**
 * Lays out the files of a model that is good, the same on all ranks. Collective over the plane of a model that has one; else local.
 * @param[in]  name   "": none
 * @param[in]  after  those that there are, of which its files come behind; NULL for none
 * @param[out] made   freed with fsdpi_saved_model_free() also after an error, unless it is NULL
 * @return FSDP_OK; FSDP_ERR_MEMORY, FSDP_ERR_ARG, recorded, for an agreement
 */
fsdp_status fsdpi_saved_model_make(const char *name, fsdp_model *model, fsdp_optimizer *optimizer,
                                   const fsdp_checkpoint_options *options, const fsdpi_saved_model *after,
                                   const char *function, fsdpi_saved_model **made);

/** NULL does nothing. */
void fsdpi_saved_model_free(fsdpi_saved_model *saved);

/** A hash of what the files say of their tensors. */
uint64_t fsdpi_saved_model_hash(const fsdpi_saved_model *saved);

/** FSDP_OK; FSDP_ERR_STATE, recorded: the model cannot be saved now. Local. */
fsdp_status fsdpi_saved_model_check_save(const fsdpi_saved_model *saved, const char *function);

/** Sets what state.json says of it, as it is now: in its own place, or in another one, of which `next` is left alone. */
void fsdpi_saved_model_describe(fsdpi_saved_model *saved);
void fsdpi_saved_model_describe_in(const fsdpi_saved_model *saved, fsdpi_model_state *state);

/* ---- lists, of which NULL is the empty one ---- */

/** The model of a name; NULL: there is none. */
const fsdpi_saved_model *fsdpi_saved_models_find(const fsdpi_saved_model *first, const char *name);

/** How many files all of them have, and how many chunks this rank writes of these. */
size_t fsdpi_saved_models_files(const fsdpi_saved_model *first);
size_t fsdpi_saved_models_chunks(const fsdpi_saved_model *first);

/** A file by its number, which is below that of fsdpi_saved_models_files(): its name and its BYTES. */
const char *fsdpi_saved_models_file(const fsdpi_saved_model *first, size_t file, uint64_t *bytes);

/** BYTES of staging, with what a save that blocks takes, and of bookkeeping. */
size_t fsdpi_saved_models_staging(const fsdpi_saved_model *first);
size_t fsdpi_saved_models_bookkeeping(const fsdpi_saved_model *first);

#endif
