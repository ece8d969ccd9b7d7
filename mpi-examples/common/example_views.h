/**
 * @file
 * The views of an open unit in f32, whatever types a model gathers parameters and reduces gradients in: matrix products and
 * loops over elements want f32. Parameters are widened once per unit and pass, where it begins; gradients are added up in
 * f32 and rounded once, where it ends. What is f32 already is used where it lies.
 *
 *     example_views_describe(&views, ctx, &model_options, tensors, n_tensors);
 *     example_views_allocate(&views);
 *     example_views_begin_backward(&views, unit);  views.params[i]  views.grads[i]  example_views_end_backward(&views, unit);
 *
 * One serves all units with the same tensors, of which one is open at a time.
 */
#ifndef EXAMPLE_VIEWS_H
#define EXAMPLE_VIEWS_H

#include <stddef.h>

#include <fsdp/fsdp.h>

/** Most tensors of a unit. */
#define EXAMPLE_MOST_TENSORS 16

typedef struct example_views {
    const float  *params[EXAMPLE_MOST_TENSORS]; /* while a pass is open */
    float        *grads[EXAMPLE_MOST_TENSORS];  /* while a backward pass is open */
    fsdp_context *ctx;
    fsdp_dtype    param_dtype, reduce_dtype;
    size_t        n_tensors;
    size_t        elements[EXAMPLE_MOST_TENSORS];
    float        *param_copy, *grad_copy; /* of the whole unit; NULL where the views are f32 */
} example_views;

/** Takes down what the units look like, as fsdp_unit_add() is told. Local. Allocates nothing. */
void example_views_describe(example_views *views, fsdp_context *ctx, const fsdp_model_options *model,
                            const fsdp_tensor *tensors, size_t n_tensors);

/** BYTES that example_views_allocate() takes. Local. */
size_t example_views_bytes(const example_views *views);

/** Makes room for the copies. Local. @return 0: out of memory. */
int example_views_allocate(example_views *views);

/** Releases them. Local. All bytes 0 is fine. */
void example_views_release(example_views *views);

/** fsdp_unit_begin_forward(), and finds the parameters. The pass ends with fsdp_unit_end_forward(). */
fsdp_status example_views_begin_forward(example_views *views, fsdp_unit *unit);

/** fsdp_unit_begin_backward(), and finds the parameters and the gradients, which are zero. */
fsdp_status example_views_begin_backward(example_views *views, fsdp_unit *unit);

/** Gives the gradients to the unit, and fsdp_unit_end_backward(). */
fsdp_status example_views_end_backward(example_views *views, fsdp_unit *unit);

#endif
