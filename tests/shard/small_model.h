/**
 * @file
 * A model of three units with awkward sizes, and gradients that any rank can compute for any other.
 */
#ifndef FSDP_TESTS_SMALL_MODEL_H
#define FSDP_TESTS_SMALL_MODEL_H

#include <stddef.h>

#include "fsdp/model.h"
#include "tests/support/mpi_test.h"

enum { N_UNITS = 3, N_TENSORS = 5, MOST_ELEMENTS = 3156 };

/** The tensors of all units, in order; unit u has those from FIRST_TENSOR[u] up to FIRST_TENSOR[u + 1]. */
extern const fsdp_tensor TENSORS[N_TENSORS];
extern const size_t      FIRST_TENSOR[N_UNITS + 1];

typedef struct small_model {
    fsdp_context *ctx;
    fsdp_model   *model;
    fsdp_unit    *units[N_UNITS];
} small_model;

/** Opens, adds the units and commits; `config` may be NULL. Fails the test if that does not succeed. */
void small_model_open(small_model *m, const fsdp_config *config, fsdp_strategy strategy);
void small_model_open_on(small_model *m, MPI_Comm comm, fsdp_strategy strategy);

/** As far as fsdp_model_create() and the units; not committed. */
void small_model_build(small_model *m, MPI_Comm comm, const fsdp_config *config, const fsdp_model_options *options);

/** The same in a context that is open, and stays open when the model is destroyed. */
void small_model_create(small_model *m, fsdp_context *ctx, const fsdp_model_options *options);

void small_model_close(small_model *m);

/** Opens a model under each strategy in turn for `check`; `config` may be NULL. */
void small_model_for_every_strategy(const fsdp_config *config, void (*check)(small_model *m));

/** ELEMENTS of a tensor. */
size_t tensor_elements(size_t tensor);

/** The gradient that rank `rank` computes in pass `pass` for one element whose value is `w`. */
float gradient_element(int rank, int pass, size_t tensor, size_t i, float w);

/** One forward and one backward pass of all units, with that gradient. */
void run_pass(small_model *m, int pass);

/** A multiple of 1/512 from -1 up to 1, and sometimes 0, for element `k` of all: its mean over any number of ranks is exact. */
float exact_gradient(int pass, size_t k);

/** One backward pass of all units, with that gradient on every rank. */
void run_exact_pass(small_model *m, int pass);

/** Copies all parameters, tensor after tensor, from gathered views. */
void copy_parameters(small_model *m, float *all);

/** ELEMENTS of all tensors: MOST_ELEMENTS. */
size_t all_elements(void);

#endif
