/**
 * @file
 * What a model and its optimizer consist of as tensors of files, and where this rank holds which elements of each.
 */
#ifndef FSDPI_PARTS_H
#define FSDPI_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"
#include "shard/checkpoint/format/safetensors.h"
#include "shard/optimizer/optimizer_state.h"
#include "shard/state/model.h"

/** What of a tensor: its values, in the model's file; the rest in the optimizer's. */
typedef enum fsdpi_part_kind {
    FSDPI_PART_VALUES,
    FSDPI_PART_MASTER,
    FSDPI_PART_HOOK,  /* what its gradient hook keeps of a flat parameter: see shard/checkpoint/common/hook_parts.h */
    FSDPI_PART_MOMENT /* the first; the others come behind it */
} fsdpi_part_kind;

/** One tensor of a file. */
typedef struct fsdpi_part {
    const fsdpi_tensor   *tensor; /* the owner of the elements; NULL: another stage's, of which this rank has nothing */
    const fsdpi_flat     *flat;   /* NULL for an ignored tensor */
    size_t                flat_index;
    fsdpi_part_kind       kind;
    const fsdp_optimizer *optimizer; /* whose moment it is; else NULL */
} fsdpi_part;

/** A tensor that is tied to another one, by the names of both. */
typedef struct fsdpi_tie {
    const char *name, *owner;
} fsdpi_tie;

/**
 * Those of one file, or of the several that it is divided into. As they are listed below they are those of this rank's stage, whose
 * tensors they have whole: fsdpi_parts_join() makes them those of the model (stage_parts.h).
 */
typedef struct fsdpi_parts {
    size_t             n;
    fsdpi_part        *parts;
    fsdpi_tensor_info *infos; /* how they are written: begin and end are for fsdpi_file_plan_make() */
    char              *names; /* that are not the tensors' own */
    uint64_t          *dims;
    fsdpi_tensor      *hook_tensors; /* that are none of the model's */
    size_t             n_ties;       /* of a model's values */
    fsdpi_tie         *ties;
} fsdpi_parts;

/** How the optimizer of a kind is called in files, and its moment number `k`: "exp_avg". */
const char *fsdpi_optimizer_kind_name(fsdp_optimizer_kind kind);
const char *fsdpi_moment_name(const fsdp_optimizer *optimizer, size_t k);

/** All of a model, those that are tied or ignored too. */
size_t fsdpi_count_tensors(const fsdp_model *model);

/** The values of all tensors, flat parameter after flat parameter, then the ignored ones. @param[in] dtype of the former. */
fsdp_status fsdpi_parts_of_model(const fsdp_model *model, fsdp_dtype dtype, fsdpi_parts *parts, fsdpi_problem *problem);

/**
 * The moments of all optimizers of a model, what its hook keeps, and with `masters` masters too. None of them: `parts->n` is 0. What
 * the hook keeps is there from now on, in its place.
 */
fsdp_status fsdpi_parts_of_optimizers(const fsdp_model *model, bool masters, fsdpi_parts *parts,
                                      fsdpi_problem *problem);

void fsdpi_parts_free(fsdpi_parts *parts);

/**
 * Consecutive elements of a part in this rank's memory. Of a tensor that is divided over a tensor axis, elements are those of this
 * position: fsdpi_tp_run_at() says where they are in the whole.
 */
typedef struct fsdpi_held_run {
    size_t     begin; /* of the tensor's elements */
    size_t     count; /* ELEMENTS */
    void      *memory;
    fsdp_dtype dtype;     /* there; FSDP_U8: codes of moments, and files hold the values in f32 */
    float     *scales;    /* of those, from the run's first block on; else NULL */
    bool       is_signed; /* likewise */
} fsdpi_held_run;

/** The elements of a part, of a flat parameter, in one of its slices. @return false where there are none */
bool fsdpi_part_in_slice(const fsdpi_part *part, int slice, size_t *begin, size_t *count);

/** In how many pieces this rank has a part: those of fsdpi_part_run(). */
int fsdpi_part_runs(const fsdpi_part *part);

/**
 * What this rank has of a part in the slice `i` of those it holds; of an ignored tensor everything, for each `i`.
 * @return false where that is nothing
 */
bool fsdpi_part_run(const fsdp_model *model, const fsdpi_part *part, int i, fsdpi_held_run *run);

/** Which of the slices it holds this rank writes: one, or none (-1), and each slice is some rank's. */
int fsdpi_written_slice(const fsdpi_flat *flat);

/** What this rank writes of a part; @return false where that is nothing. Of an ignored tensor rank 0's values are written. */
bool fsdpi_part_written(const fsdp_model *model, const fsdpi_part *part, fsdpi_held_run *run);

#endif
