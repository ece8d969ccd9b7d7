/**
 * @file
 * A model of six units with every kind of tensor that can be divided over a tensor axis, or not, on a mesh of any shape: and the same
 * on one rank, which has to be equal bit by bit. Gradients are small multiples of 1/16, a function of the element in the whole tensor.
 */
#ifndef FSDP_TESTS_MESH_NET_H
#define FSDP_TESTS_MESH_NET_H

#include <stdbool.h>

#include <fsdp/fsdp.h>

#include "tests/support/mpi_test.h"

enum { MESH_UNITS = 6, MESH_MOST_TENSORS = 10 };

typedef struct mesh_shape {
    int  dp, tp, pp;
    bool interleaved; /* unit u is of stage u modulo pp; else stages have units that follow each other */
} mesh_shape;

/** Data axes of several lengths, "rack", "node" and "gpu", in place of "dp"; and what else the mesh is made with. */
typedef struct mesh_data {
    int                rack, node, gpu;
    const int         *order; /* NULL: by nodes */
    const fsdp_config *config;
} mesh_data;

typedef struct mesh_unit {
    fsdp_unit  *unit; /* NULL: another stage's */
    fsdp_tensor tensors[MESH_MOST_TENSORS];
    size_t      n;
} mesh_unit;

typedef struct mesh_net {
    mesh_shape      shape;
    MPI_Comm        comm;
    fsdp_context   *ctx, *dp;
    fsdp_mesh      *mesh;
    int             tp_position, stage;
    float           factor; /* of gradients; 0 for 1 */
    fsdp_model     *model;
    fsdp_strategy   strategy;
    mesh_unit       units[MESH_UNITS];
    fsdp_optimizer *optimizer;
} mesh_net;

/**
 * On the first dp x tp x pp ranks of MPI_COMM_WORLD; on others returns false and does nothing. `options` or NULL; its mesh and axes are
 * set here. The model has AdamW.
 */
bool mesh_net_open(mesh_net *net, mesh_shape shape, const fsdp_model_options *options);

/** The same with such data axes; NULL: as above. */
bool mesh_net_open_over(mesh_net *net, mesh_shape shape, const mesh_data *data, const fsdp_model_options *options);

/** On MPI_COMM_SELF, without a mesh. */
void mesh_net_open_alone(mesh_net *net, const fsdp_model_options *options);

/**
 * As far as the context and the mesh; as far as units, which are not committed, with options that have the mesh; and the rest. `options`
 * or NULL.
 */
void               mesh_net_open_mesh(mesh_net *net, MPI_Comm comm, mesh_shape shape, const mesh_data *data);
fsdp_model_options mesh_net_options(const mesh_net *net, const fsdp_model_options *options);
void               mesh_net_describe(mesh_net *net, const fsdp_model_options *options);
void               mesh_net_commit(mesh_net *net);

void mesh_net_close(mesh_net *net);

/** A backward pass of all units that this rank has. */
void mesh_net_backward(mesh_net *net, int step);

/** Backward passes, clipping to a norm of 1, and a step. Returns the norm. */
double mesh_net_train(mesh_net *net, int step);

/** Fails the test unless all that this rank has of parameters and ignored tensors has the bits of `alone`. */
void mesh_net_check(mesh_net *net, mesh_net *alone);

/** The shape, for a message. */
const char *mesh_shape_text(mesh_shape shape);

/** Those that `ranks` ranks are tested with, some with fewer; `n` of them. */
const mesh_shape *mesh_shapes(int ranks, size_t *n);

#endif
