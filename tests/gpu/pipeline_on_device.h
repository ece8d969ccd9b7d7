/**
 * @file
 * Runs a test of pipelines, which knows host memory only, with activations in GPU memory; where PIPELINE_ON_DEVICE is `host`, in that of
 * the host. Its models are where model_on_device.h has them. Its callbacks get copies, and what they put out goes to the GPU without
 * anything that waits for it. To be included before all else.
 */
#ifndef FSDP_TESTS_PIPELINE_ON_DEVICE_H
#define FSDP_TESTS_PIPELINE_ON_DEVICE_H

#include "tests/gpu/model_on_device.h"

int on_device_pipeline_test_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests,
                                size_t n_tests, CMFixtureFunction setup, CMFixtureFunction teardown);

fsdp_status on_device_pipeline_create(fsdp_context *ctx, const fsdp_pipeline_options *options,
                                      const fsdp_pipeline_callbacks *callbacks, fsdp_pipeline **pipeline);
void        on_device_pipeline_destroy(fsdp_pipeline *pipeline);

#ifndef MODEL_ON_DEVICE_ITSELF
#undef fsdp_test_run
#define fsdp_test_run         on_device_pipeline_test_run
#define fsdp_pipeline_create  on_device_pipeline_create
#define fsdp_pipeline_destroy on_device_pipeline_destroy
#endif

#endif
