/** @file What a pipeline consists of on one rank, once its schedule is known to be good: this rank's row and its stages. */
#ifndef FSDPI_PIPELINE_H
#define FSDPI_PIPELINE_H

#include "fsdp/pipeline.h"
#include "lib/context/context.h"
#include "shard/pipeline/action.h"
#include "shard/pipeline/run/box.h"
#include "shard/pipeline/run/need.h"

typedef struct fsdpi_stage {
    int  number;
    bool is_first, is_last;

    struct fsdpi_stage *before, *behind; /* neighbours on this rank; NULL: on another one, or there is none */

    fsdpi_outbox outputs, input_gradients; /* to other ranks; without places where there is none */
    fsdpi_inbox  inputs, output_gradients; /* wherever they come from */
    fsdpi_shelf  scratch;                  /* of the last stage: its output, until the loss is there */
    bool         has_units;
    fsdp_unit  **units;
    size_t       n_units;
    int          n_passes, passes_left; /* backward passes of a step, and of this one that are still to come */
} fsdpi_stage;

/** What a pipeline has on the rank's GPU, where activations are there. */
typedef struct fsdpi_pipeline_gpu {
    fsdpi_gpu_device *device;  /* NULL: activations are on the host */
    fsdpi_gpu_stream  in, out; /* what comes from other ranks, and what leaves through pinned memory */
    bool              staged;  /* MPI is given pinned memory of the host */
    bool follows; /* messages begin, or places are free, when the GPU has come so far: the host looks after that */
    unsigned char *offered; /* places that other ranks of the node read, and its BYTES */
    size_t         offered_bytes;
    unsigned char *pinned;
    size_t         pinned_bytes;
} fsdpi_pipeline_gpu;

struct fsdp_pipeline {
    fsdp_context           *ctx;
    fsdpi_owned             owned;
    fsdp_pipeline_callbacks callbacks;
    fsdp_pipeline_info      info;
    int                     buffers;
    int                    *owner; /* of each stage: a rank */
    fsdpi_action           *row;   /* what this rank does in a step, in order */
    size_t                  n_row;
    fsdpi_stage            *stages; /* of this rank */
    double                 *losses; /* of each micro-batch, on the rank of the last stage */
    fsdpi_pipeline_gpu      gpu;
    unsigned char          *held; /* what this rank alone sees, and its BYTES; in GPU memory where activations are */
    size_t                  held_bytes;
    void                   *shown; /* what the ranks of its node see too */
    size_t                  shown_bytes;
    void                   *lists; /* memory of small arrays */
    size_t                  lists_bytes;
    MPI_Comm                comm; /* of MPI's messages; MPI_COMM_NULL where there are none */
    bool                    ready;

    const char *name;      /* of the call that is under way */
    bool        evaluates; /* forward passes alone */
    uint64_t    step;      /* from 1, failed ones and evaluations too */
    fsdp_status status;    /* what has failed on this rank in this step */
    char        text[FSDPI_DETAIL_BYTES];
    bool spoiled;  /* this step has failed here or on a rank that this one has heard of: nothing is computed any more */
    double waited; /* in this step */
};

/** This rank's step has failed: from now on nothing is computed in it. The first failure counts. */
void fsdpi_pipeline_spoil(fsdp_pipeline *pipeline, fsdp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The stage of this rank with a number; NULL. */
fsdpi_stage *fsdpi_stage_of(const fsdp_pipeline *pipeline, int number);

#endif
