/**
 * @file
 * A model with every kind of tensor, whose training gives the same bits on any number of ranks under any strategy: gradients
 * are small multiples of 1/16, the same on all ranks, so that sums and means of them are exact.
 */
#ifndef FSDP_TESTS_SAVED_MODEL_H
#define FSDP_TESTS_SAVED_MODEL_H

#include <fsdp/fsdp.h>

#include "tests/support/mpi_test.h"

enum { N_SAVED_UNITS = 3, N_SAVED_TENSORS = 9 };

/** The tensors, in order of the units. The last one but one is tied to the first. */
extern const fsdp_tensor SAVED_TENSORS[N_SAVED_TENSORS];

typedef struct saved_model {
    MPI_Comm        comm;
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *units[N_SAVED_UNITS];
    fsdp_optimizer *optimizer;
} saved_model;

/** What is open on the first `size` ranks of MPI_COMM_WORLD; on others saved_model_open() returns 0 and does nothing. */
int saved_model_open(saved_model *m, int size, const fsdp_model_options *options, fsdp_optimizer_kind kind);
/** On `m->comm`, which is set; saved_model_close() frees it. */
void saved_model_open_on(saved_model *m, const fsdp_model_options *options, fsdp_optimizer_kind kind);

/** The same in other units: unit u has tensors first[u] to first[u + 1]. Not for saved_model_train(). */
void saved_model_open_grouped(saved_model *m, const fsdp_model_options *options, fsdp_optimizer_kind kind,
                              const size_t first[N_SAVED_UNITS + 1]);

void saved_model_close(saved_model *m);

/** A further one in a context that is open; fsdp_model_destroy() is all that it needs at the end. */
void saved_model_make(saved_model *m, fsdp_context *ctx, const fsdp_model_options *options, fsdp_optimizer_kind kind);

/** Steps number `first` and on, `n` of them, with what the program itself changes: the ignored tensor. */
void saved_model_train(saved_model *m, size_t first, size_t n);

/** ELEMENTS of a tensor. */
size_t saved_elements(size_t tensor);

/** An empty folder that all ranks share, between the two functions. */
extern char saved_folder[256];

/** cmocka's setup and teardown of a group: make that folder, and remove it with everything in it. Collective. */
int saved_folder_make(void **state);
int saved_folder_remove(void **state);

#endif
