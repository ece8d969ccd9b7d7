/**
 * @file
 * Runs a test of models, which knows host memory only, on the GPU: models get FSDP_ON_DEVICE as their placement, or what
 * MODEL_ON_DEVICE says, `offloaded` or `host`; but one without a mesh stays on the host where MODEL_WITHOUT_MESH is `host`. Views
 * are copies in host memory, read from the device where a test asks for them and written back where it ends the pass; those of
 * shards, where it has the loss scaler step or says that they have changed. To be included before all else.
 */
#ifndef FSDP_TESTS_MODEL_ON_DEVICE_H
#define FSDP_TESTS_MODEL_ON_DEVICE_H

#include "fsdp/fsdp.h"
#include "tests/support/mpi_test.h"

int on_device_test_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests,
                       CMFixtureFunction setup, CMFixtureFunction teardown);
int on_device_open_context(void **state);
int on_device_close_context(void **state);

/** For what calls a program inside its passes: views are read anew from here on; and gradients are written back. */
void on_device_begin_callback(void);
void on_device_end_callback(void);

/** Contexts that are opened from now on have one stream between them. */
void        on_device_share_stream(void);
fsdp_status on_device_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx);
fsdp_status on_device_finalize(fsdp_context *ctx);
fsdp_status on_device_model_create(fsdp_context *ctx, const fsdp_model_options *options, fsdp_model **model);
void        on_device_model_destroy(fsdp_model *model);

/** Views that a test has seen in an earlier pass of the unit are gone from here on. */
fsdp_status on_device_begin_forward(fsdp_unit *unit);
fsdp_status on_device_begin_backward(fsdp_unit *unit);
/** Writes parameters back where the library checks that nobody does. */
fsdp_status on_device_end_forward(fsdp_unit *unit);
fsdp_status on_device_end_backward(fsdp_unit *unit);

const void *on_device_param(fsdp_unit *unit, size_t i);
void       *on_device_grad(fsdp_unit *unit, size_t i);
/** Written back before, and read again after, what reads or writes ignored tensors. */
void *on_device_buffer(fsdp_unit *unit, size_t i);

/** The loss scaler's step and fsdp_model_shards_changed() take what has been written to them; behind both they are gone. */
fsdp_status on_device_shard(fsdp_unit *unit, size_t i, fsdp_shard *shard);
fsdp_status on_device_shards_changed(fsdp_model *model);
fsdp_status on_device_scaler_step(fsdp_loss_scaler *scaler, fsdp_optimizer *optimizer, int *stepped);

fsdp_status on_device_export(fsdp_model *model, const char *name, int root, void *values, size_t bytes);
fsdp_status on_device_import(fsdp_model *model, const char *name, int root, const void *values, size_t bytes);
fsdp_status on_device_checkpoint_save(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state);
fsdp_status on_device_checkpoint_save_async(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state);
fsdp_status on_device_checkpoint_load(fsdp_model *model, fsdp_optimizer *optimizer, const char *path,
                                      const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state);

#ifndef MODEL_ON_DEVICE_ITSELF
#define fsdp_test_run              on_device_test_run
#define fsdp_test_open_context     on_device_open_context
#define fsdp_test_close_context    on_device_close_context
#define fsdp_init                  on_device_init
#define fsdp_finalize              on_device_finalize
#define fsdp_model_create          on_device_model_create
#define fsdp_model_destroy         on_device_model_destroy
#define fsdp_unit_begin_forward    on_device_begin_forward
#define fsdp_unit_begin_backward   on_device_begin_backward
#define fsdp_unit_end_forward      on_device_end_forward
#define fsdp_unit_end_backward     on_device_end_backward
#define fsdp_unit_param            on_device_param
#define fsdp_unit_grad             on_device_grad
#define fsdp_unit_buffer           on_device_buffer
#define fsdp_unit_shard            on_device_shard
#define fsdp_model_shards_changed  on_device_shards_changed
#define fsdp_loss_scaler_step      on_device_scaler_step
#define fsdp_tensor_export         on_device_export
#define fsdp_tensor_import         on_device_import
#define fsdp_checkpoint_save       on_device_checkpoint_save
#define fsdp_checkpoint_save_async on_device_checkpoint_save_async
#define fsdp_checkpoint_load       on_device_checkpoint_load
#endif

#endif
