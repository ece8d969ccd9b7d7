/**
 * @file
 * What a rank does at one place of a pipeline schedule, and how that is written: the names that torch.distributed.pipelining prints,
 * as in `2F0`, stage 2 runs forward with micro-batch 0.
 */
#ifndef FSDPI_ACTION_H
#define FSDPI_ACTION_H

#include <stdbool.h>
#include <stddef.h>

typedef enum fsdpi_work {
    FSDPI_RUN_FORWARD,         /* F */
    FSDPI_RUN_BACKWARD,        /* B: the two that follow in one */
    FSDPI_RUN_BACKWARD_INPUT,  /* I: the gradient of the stage's input */
    FSDPI_RUN_BACKWARD_WEIGHT, /* W: those of its parameters, at any time after I */
    FSDPI_SEND_F,              /* the output, to the stage behind */
    FSDPI_RECV_F,              /* the input, from the stage before */
    FSDPI_SEND_B,              /* the gradient of the input, to the stage before */
    FSDPI_RECV_B,              /* that of the output, from the stage behind */
    FSDPI_UNSHARD,             /* this and the next two without a micro-batch: the parameters are gathered */
    FSDPI_RESHARD,             /* and given back */
    FSDPI_REDUCE_GRAD,         /* the gradients of all micro-batches are reduced */
    FSDPI_N_WORKS
} fsdpi_work;

typedef struct fsdpi_action {
    fsdpi_work work;
    int        stage, micro; /* micro: 0 where there is none */
} fsdpi_action;

enum { FSDPI_ACTION_BYTES = 32 }; /* of the longest text of an action, with its NUL */

bool fsdpi_has_micro(fsdpi_work work);
bool fsdpi_is_compute(fsdpi_work work);
bool fsdpi_is_message(fsdpi_work work);

/** Whether the text, without space around it, is an action. */
bool fsdpi_action_parse(const char *text, size_t length, fsdpi_action *action);

/** Writes FSDPI_ACTION_BYTES at most; returns `text`. */
const char *fsdpi_action_print(const fsdpi_action *action, char *text);

#endif
