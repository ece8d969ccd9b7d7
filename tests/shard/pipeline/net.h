/**
 * @file
 * A network of stages, each a layer y = tanh(W x + b), and its training: by pipelines, and micro-batch after micro-batch on one rank,
 * with the same arithmetic.
 *
 * `pipes` pipelines stand beside each other: rank r of MPI_COMM_WORLD is rank r mod p of pipeline r / p. The ranks with the same one
 * share a model, of their stages.
 */
#ifndef FSDP_TESTS_NET_H
#define FSDP_TESTS_NET_H

#include "fsdp/fsdp.h"
#include "tests/support/mpi_test.h"

enum { NET_WIDTH = 5, NET_ROWS = 2, NET_STAGES = 16, NET_MICROS = 16 };
enum { NET_BYTES = NET_WIDTH * NET_ROWS * sizeof(float) };

typedef enum net_callback { NET_NONE, NET_FORWARD, NET_LOSS, NET_BACKWARD_INPUT, NET_BACKWARD_WEIGHT } net_callback;

typedef struct net {
    int             stages, micros;
    int             bare; /* a stage that only doubles, without parameters; -1: none */
    fsdp_context   *ctx;  /* of the model */
    fsdp_model     *model;
    fsdp_unit      *units[NET_STAGES]; /* NULL: not here */
    fsdp_optimizer *optimizer;
    int             data; /* whose samples: the number of the pipeline */
    int             step;
    int             local; /* gradients of micro-batches add up on each rank */
    net_callback    fails; /* in this callback, at this place, with FSDP_ERR_IO */
    int             fails_stage, fails_micro;
    double          naps; /* SECONDS before the place above */
} net;

/** `here`: of each stage, whether the model has it. */
void net_open(net *n, MPI_Comm comm, int stages, int micros, int bare, const int *here, int local_gradients);
void net_close(net *n);

extern const fsdp_pipeline_callbacks NET_CALLBACKS; /* but for `user` */

/** A whole step without a pipeline, on a net that has all stages. Returns the sum of losses. */
double net_serial_step(net *n);

/** The optimizer's part of a step. */
void net_update(net *n);

/** The parameters of a stage: NET_WIDTH x (NET_WIDTH + 1). */
void net_parameters(net *n, int stage, float *values);

#endif
