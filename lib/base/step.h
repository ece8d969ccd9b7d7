/**
 * @file
 * How far a step of an operation has come.
 */
#ifndef FSDPI_STEP_H
#define FSDPI_STEP_H

typedef enum fsdpi_progress {
    FSDPI_WAITING, /* for other ranks */
    FSDPI_MOVED,   /* and can go on at once */
    FSDPI_FINISHED
} fsdpi_progress;

#endif
