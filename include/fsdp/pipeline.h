/**
 * @file
 * Pipelines: a network cut into stages on several ranks, through which the micro-batches of a step go one after the other.
 *
 * The program computes, in four callbacks; the library does the rest in the order of a schedule: it passes activations and their
 * gradients between stages and owns the memory for them, gathers the parameters of a stage's units and gives them back, and adds up
 * and reduces their gradients. docs/pipelines.md compares schedules; `fsdp-plan pipeline` shows one before a job is started.
 *
 *     fsdp_pipeline_create(ctx, &options, &callbacks, &pipeline);    (ctx: of the pipeline's ranks)
 *     fsdp_pipeline_set_units(pipeline, stage, units, n_units);      (for each stage of this rank)
 *     for each step:
 *         fsdp_pipeline_step(pipeline, &loss);
 *         fsdp_optimizer_step(optimizer);                            (of the model of this rank's units)
 *
 * Two kinds of contexts meet here. The ranks of a pipeline are those of `ctx`; a pipeline of 4 ranks has a context of 4. The units of
 * a stage belong to a model of another context: that of the ranks which hold the same stage in other pipelines, beside each
 * other as data-parallel ranks; or of one rank (MPI_COMM_SELF), where there is one pipeline only. All pipelines of a program have the
 * same schedule then. What a model needs is said in fsdp/model.h: with `local_gradients` the gradients of a step's micro-batches
 * add up on each rank and are reduced once, else each micro-batch's are; FSDP_VIEWS_IN_FLIGHT must allow for all units of a
 * stage at once; and `kept_units` keeps that many units gathered from one micro-batch to the next.
 *
 * Results do not depend on the schedule, or on the number of ranks, as long as each stage's backward passes come in the order
 * of micro-batches, as in all schedules made here: they have the bits of one rank that computes micro-batch after micro-batch.
 *
 * Activations are passed in host memory, aligned to 64 bytes. Between ranks of a node the receiver copies them out of the
 * sender's memory; between nodes they are MPI's messages, which arrive while ranks compute: the progress thread of the pipeline's
 * context lets MPI go on. Without one (fsdp_has_progress_thread()) they do so as far as MPI makes progress by itself.
 *
 * With FSDP_ON_DEVICE (fsdp_pipeline_options::placement) they are in the memory of the GPU that the pipeline's context uses, and
 * results have the same bits. Callbacks put what they compute into the stream that fsdp_stream_set() named for the pipeline's context,
 * and return. A message is sent after all that was in this stream when the schedule came to its send, and what the next callback puts
 * in comes after what has been received: by events. The host waits for the GPU only where a message is MPI's, which knows no streams:
 * it goes on with the schedule meanwhile, and waits where nothing else is left to do. Within a node receivers copy out of the sender's
 * GPU memory. Between nodes, and where the system does not let processes share GPU memory, messages are MPI's: from and to GPU memory
 * where MPI takes that (fsdp_has_gpu_aware_mpi()), else through pinned memory of the host.
 *
 * Models and activations can each be on the GPU or on the host. What is on the host must be read and written when a callback returns.
 * If both are on the GPU, their contexts need the same stream.
 */
#ifndef FSDP_PIPELINE_H
#define FSDP_PIPELINE_H

#include <stddef.h>

#include "fsdp/context.h"
#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

typedef struct fsdp_pipeline fsdp_pipeline;

/** What a pipeline is to be. The same on all ranks. Begin with FSDP_PIPELINE_OPTIONS_DEFAULT. */
typedef struct fsdp_pipeline_options {
    size_t size; /**< BYTES of this struct: FSDP_PIPELINE_OPTIONS_DEFAULT or fsdp_pipeline_options_init() sets it */

    /** The schedule: "gpipe", "1f1b", "interleaved" or "zb-h1". Not used with one of the two below. */
    const char *schedule;
    const char *file; /**< NULL; or a file that has the schedule, which every rank reads: see docs/pipelines.md */
    const char *text; /**< NULL; or the schedule as text, as such a file has it */

    int stages_per_rank; /**< of "interleaved", 2 or more; of the others 1. A file or text says itself */
    int micros;          /**< micro-batches of a step; with a file or text 0, or as many as it has */

    /**
     * How many messages a stage may have sent, in one direction, that the next has not received yet; at least 1. A schedule that
     * needs more is refused: it would deadlock.
     */
    int buffers;
    int most_held; /**< a schedule that holds the activations of more micro-batches at once on a rank is refused; 0: any */

    size_t bytes; /**< BYTES of what a stage passes to the next with one micro-batch, and of its gradient; at least 1 */

    /** NULL; or instead, where they differ: for each stage but the last, the BYTES of what it passes on. Copied. */
    const size_t *bytes_of;

    size_t
        output_bytes; /**< BYTES of the last stage's output and of its gradient; 0: the program has its own memory for them */
    size_t batch; /**< samples of a step, which `micros` must divide; 0: not checked */
    size_t
        memory_limit; /**< BYTES that a rank may hold for activations and messages, on host and GPU: see fsdp_pipeline_info; 0: any */

    /**
     * Where inputs, outputs and their gradients are that callbacks get: FSDP_ON_HOST, or FSDP_ON_DEVICE in a context that uses a GPU
     * (fsdp/device.h), also for the order of work.
     */
    fsdp_placement placement;
} fsdp_pipeline_options;

/** 1F1B, one stage on each rank; `micros` and `bytes` are to be set. */
#define FSDP_PIPELINE_OPTIONS_DEFAULT                                                                                  \
    {                                                                                                                  \
        sizeof(fsdp_pipeline_options), "1f1b", NULL, NULL, 1, 0, 1, 0, 0, NULL, 0, 0, 0, FSDP_ON_HOST                  \
    }

/**
 * What the program computes. fsdp_pipeline_step() calls these in the thread that has called it, each for one micro-batch in one
 * stage of this rank, with the stage's units between begin and end of a pass, so that fsdp_unit_param() and, where it says so,
 * fsdp_unit_grad() give their views. They may call other functions of the library on other contexts than the pipeline's, as long as all
 * ranks of those do. A status other than FSDP_OK ends the step with it on all ranks.
 *
 * Of the memory that they are given, inputs must not be written to, and outputs are undefined before. Where it is not said otherwise
 * it is valid until the callback returns; GPU memory, until what it has put into the stream until then is done.
 */
typedef struct fsdp_pipeline_callbacks {
    size_t size; /**< BYTES of this struct: fsdp_pipeline_callbacks_init() sets it */

    /**
     * Computes the stage's output from its input.
     * @param[in]  in   what the stage before has put out; NULL in stage 0. Valid, at this address, until the micro-batch's last
     *                  backward callback in this stage has returned
     * @param[out] out  of the last stage NULL where `output_bytes` is 0
     */
    fsdp_status (*forward)(void *user, int stage, int micro, const void *in, void *out);

    /**
     * Computes the loss of a micro-batch, and its gradient. Called on the rank of the last stage, right behind that one's forward.
     * @param[in]  out       the last stage's output
     * @param[out] grad_out  its gradient, divided as the program wants it (by the number of micro-batches, for their mean). Valid
     *                       as `in` above. NULL where `output_bytes` is 0
     * @param[out] value     of this micro-batch; on the host, for which the callback waits if it is computed on a GPU
     */
    fsdp_status (*loss)(void *user, int micro, const void *out, void *grad_out, double *value);

    /**
     * Computes the gradient of the stage's input. fsdp_unit_grad() may be used only if `backward_weight` is NULL.
     * @param[in]  in        as it was given to `forward`
     * @param[in]  grad_out  the gradient of the output; NULL where `out` was. Valid as `in`
     * @param[out] grad_in   NULL in stage 0
     */
    fsdp_status (*backward_input)(void *user, int stage, int micro, const void *in, const void *grad_out,
                                  void *grad_in);

    /**
     * Computes the gradients of the stage's parameters, into the views of fsdp_unit_grad(), which are zero. Right behind
     * backward_input, or later where the schedule has backward passes in two actions, as zb-h1. NULL: backward_input does this
     * too, and such schedules are refused.
     */
    fsdp_status (*backward_weight)(void *user, int stage, int micro, const void *in, const void *grad_out);

    void *user; /**< handed to all of them; stays the program's */
} fsdp_pipeline_callbacks;

/** What is known of a pipeline on this rank. */
typedef struct fsdp_pipeline_info {
    int    ranks, stages, micros;
    int    stages_here; /**< on this rank */
    int    most_held; /**< micro-batches whose activations this rank holds at once, between forward and backward, over its stages */
    int    most_owed; /**< and of which it holds input and gradient between the two actions of a backward pass */
    size_t messages;  /**< of a step, that this rank sends */

    /**
     * BYTES that the library holds on this rank for inputs, gradients and messages, known before they are allocated, and as
     * many until fsdp_pipeline_destroy(): FSDP_MEMORY_BUFFERS of fsdp_memory_usage(). The last two fields say what is not ordinary
     * host memory of it.
     */
    size_t bytes;
    size_t steps;        /**< that have succeeded */
    double step_seconds; /**< of the last one */
    double wait_seconds; /**< of which this rank has waited for messages and for the end of the others */
    size_t device_bytes; /**< of `bytes`, on the rank's GPU: `device` of fsdp_memory_usage() has them too */
    size_t pinned_bytes; /**< of `bytes`, pinned memory of the host, for messages between nodes that go through it */
} fsdp_pipeline_info;

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_PIPELINE_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_pipeline_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and
 * those behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_pipeline_options_init_size(fsdp_pipeline_options *options, size_t size);
static inline void fsdp_pipeline_options_init(fsdp_pipeline_options *options)
{
    fsdp_pipeline_options_init_size(options, sizeof *options);
}

/**
 * Sets all fields to NULL. Local; `callbacks` must not be NULL.
 *
 * fsdp_pipeline_callbacks_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and
 * those behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_pipeline_callbacks_init_size(fsdp_pipeline_callbacks *callbacks, size_t size);
static inline void fsdp_pipeline_callbacks_init(fsdp_pipeline_callbacks *callbacks)
{
    fsdp_pipeline_callbacks_init_size(callbacks, sizeof *callbacks);
}

/**
 * Makes a pipeline over all ranks of a context. Collective. Proves first that the schedule works: every pass is there once and
 * behind what it needs, every receive has its send, and no ranks wait for each other for ever.
 *
 * @param[in]  options    copied
 * @param[in]  callbacks  copied; `forward`, `loss` and `backward_input` must be set, also on ranks that do not call all of them
 * @param[out] pipeline   the caller releases it with fsdp_pipeline_destroy(), before fsdp_finalize()
 * @return FSDP_OK; the same on every rank, and nothing is allocated then: FSDP_ERR_ARG: an option out of range, micro-batches that do
 *         not divide `batch`, or, with "interleaved", are no multiple of the ranks; a schedule that cannot be carried out (says what is
 *         wrong with which action, and the log has what each rank does around it), or is for another number of ranks;
 *         a `memory_limit` that is not enough (names both); FSDP_ERR_UNSUPPORTED: FSDP_ON_DEVICE in a context that uses no GPU (says
 *         why), or FSDP_ON_DEVICE_OFFLOADED; FSDP_ERR_IO: the file cannot be read; FSDP_ERR_MISMATCH: ranks have
 *         different schedules or options; FSDP_ERR_MEMORY, FSDP_ERR_DEVICE, FSDP_ERR_MPI, FSDP_ERR_TIMEOUT.
 */
FSDP_API fsdp_status fsdp_pipeline_create(fsdp_context *ctx, const fsdp_pipeline_options *options,
                                          const fsdp_pipeline_callbacks *callbacks, fsdp_pipeline **pipeline);

/**
 * Names the units of a stage of this rank, which must be done for each before the first step. Local.
 *
 * @param[in] units    of a committed model, on the host or on a GPU, in the order in which their passes begin; copied. Every unit in one stage
 *                     only. They must outlive the pipeline's last step
 * @param[in] n_units  0 for a stage without parameters; `units` is not looked at then
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, no such stage, one of another rank (names it), a unit that is in a stage already;
 *         FSDP_ERR_STATE: the model is not committed, or there has been a step, or FSDP_VIEWS_IN_FLIGHT of the model's context is
 *         below `n_units`; FSDP_ERR_UNSUPPORTED: a model on another GPU than the activations; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_pipeline_set_units(fsdp_pipeline *pipeline, int stage, fsdp_unit *const *units,
                                             size_t n_units);

/** The rank of the pipeline's context that has a stage; -1 if there is no such stage or `pipeline` is NULL. Local. */
FSDP_API int fsdp_pipeline_rank_of_stage(const fsdp_pipeline *pipeline, int stage);

/**
 * What is known of a pipeline. Local.
 * @return FSDP_OK; FSDP_ERR_ARG if an argument is NULL.
 */
FSDP_API fsdp_status fsdp_pipeline_get_info(const fsdp_pipeline *pipeline, fsdp_pipeline_info *info);

/**
 * One step: all micro-batches forward and backward, as the schedule says. Gradients are then where a backward pass of one
 * rank would have left them: clip them, and call fsdp_optimizer_step(). Collective over the pipeline's ranks, and over those of each
 * model that has units in it. The models' passes reduce over all ranks from then on (FSDP_SYNC_ALL), whatever was set before.
 *
 * @param[out] loss  the sum of what `loss` has given, in the order of micro-batches; the same on all ranks. Or NULL.
 * @return FSDP_OK; the same on every rank of the pipeline: the status of the callback that has failed first on the lowest rank that
 *         one has failed on (names stage and micro-batch); FSDP_ERR_STATE: a stage has no units yet, or a model on the GPU another
 *         stream than the activations there; FSDP_ERR_DEVICE: a call of the GPU's runtime has failed on some rank;
 *         FSDP_ERR_MISMATCH and others as for the passes of fsdp/model.h. The step of every model of this rank has then failed, as that header describes:
 *         call fsdp_model_zero_grad() once on each, and repeat the step.
 *         FSDP_ERR_MPI, FSDP_ERR_TIMEOUT: the context can only be finalized; the text names the action and the rank that it
 *         waits for. Other ranks run into their own time-outs.
 */
FSDP_API fsdp_status fsdp_pipeline_step(fsdp_pipeline *pipeline, double *loss);

/**
 * The forward passes of a step alone, and `loss`, with all micro-batches in the order of the schedule: for validation. Activations are
 * given back at once, so that `in` is valid until the callback returns, and the gradients that `loss` computes are not used. The
 * sum has the bits of a step's. Collective, with the same callbacks, as fsdp_pipeline_step(); the first of either names units before.
 *
 * @param[out] loss  as for fsdp_pipeline_step()
 * @return as fsdp_pipeline_step(), and what follows an error is the same. It is none of the `steps` of fsdp_pipeline_info.
 */
FSDP_API fsdp_status fsdp_pipeline_evaluate(fsdp_pipeline *pipeline, double *loss);

/** Releases a pipeline. Its units and their models stay. Collective. NULL does nothing. */
FSDP_API void fsdp_pipeline_destroy(fsdp_pipeline *pipeline);

FSDP_EXTERN_C_END

#endif
