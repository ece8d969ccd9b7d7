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
    unsigned char          *held;   /* what this rank alone sees, and its BYTES */
    size_t                  held_bytes;
    void                   *shown; /* what the ranks of its node see too */
    size_t                  shown_bytes;
    void                   *lists; /* memory of small arrays */
    size_t                  lists_bytes;
    MPI_Comm                comm; /* of messages between nodes; MPI_COMM_NULL where there is one node */
    bool                    ready;

    uint64_t    step;   /* from 1, failed ones too */
    fsdp_status status; /* what has failed on this rank in this step */
    char        text[FSDPI_DETAIL_BYTES];
    bool spoiled;  /* this step has failed here or on a rank that this one has heard of: nothing is computed any more */
    double waited; /* in this step */
};

/** The stage of this rank with a number; NULL. */
fsdpi_stage *fsdpi_stage_of(const fsdp_pipeline *pipeline, int number);

#endif
