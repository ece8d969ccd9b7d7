/**
 * @file
 * Checkpoints: the state of a model in files that any number of ranks can load under any strategy, that other programs
 * can open, and that no crash can damage.
 *
 *     fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
 *     fsdp_checkpoint_open(model, optimizer, "run1", &options, &checkpoint);
 *     fsdp_checkpoint_latest(ctx, "run1", path, sizeof path);
 *     if (path[0]) fsdp_checkpoint_load(model, optimizer, path, NULL, &state);
 *     for each step from state.step on:
 *         ...
 *         if (it is time) fsdp_checkpoint_save(checkpoint, &state);
 *     fsdp_checkpoint_close(checkpoint);
 *
 * A folder holds many checkpoints, each a folder of its own, and `latest`, a small file that names the last one:
 *
 *     run1/latest                               "step-000000500"
 *     run1/step-000000500/model.safetensors     the parameters, and ignored tensors, under their names in the model
 *     run1/step-000000500/optimizer.safetensors its moments: NAME.exp_avg, NAME.exp_avg_sq, NAME.momentum_buffer; and what its
 *                                               gradient hook keeps: UNIT.int8_error.BLOCK.of-RANKS
 *     run1/step-000000500/NAME.model.safetensors, NAME.optimizer.safetensors  of further models: see fsdp_checkpoint_add_model()
 *     run1/step-000000500/simulation.safetensors  the program's own arrays: see fsdp_checkpoint_add()
 *     run1/step-000000500/state.json            step, sampler, loss scaler, version
 *     run1/step-000000500/checksums.bin         checksums of all of it; state.json has the one of this file
 *     run1/.run                                 which run the folder is of, where states are cached
 *     run1/.lock                                held, with flock(2), by the program that saves there; or else run1/.owner, which
 *                                               names it: see FSDP_CHECKPOINT_LOCK in docs/settings.md
 *
 * model.safetensors is Hugging Face's format: safetensors and PyTorch open it as it is. A tensor that is tied is there once,
 * under its owner's name; the header's metadata notes "tied.NAME": "OWNER" for each other name. Of ignored tensors, which may
 * differ between ranks, rank 0's are saved, in the type in which they are held, and every rank loads them.
 *
 * Each rank writes the bytes it holds with pwrite(2) into files that all ranks share; replicas write a part each of what they
 * hold alike. The folder must be the same for all ranks, on a file system they have in common. Nothing is gathered. A save
 * takes at most FSDP_CHECKPOINT_SCRATCH_BYTES of staging on each rank, a load less, plus the lists of what is where. With
 * asynchronous saves there is also room for a copy of what the rank writes, from fsdp_checkpoint_open() on: see
 * fsdp_checkpoint_budget().
 *
 * Of a model on a mesh (fsdp/model.h) calls are collective over all ranks that have parts of it, and files are those of one rank, in
 * which tensors are whole: each rank writes its own bytes of them. Of an ignored tensor with FSDP_TENSOR_TP the first rank of each
 * position along the tensor axis saves its part. What a gradient hook keeps is left out.
 *
 * A save writes into a folder whose name begins with a period; syncs files and folder; renames it; then replaces `latest`; and
 * only then deletes old checkpoints, each renamed first. Whenever it is interrupted, `latest` names a whole checkpoint, whose bytes
 * are on the disk, and every folder named step-... is whole. What an interrupted save has left is removed by the next one. A file
 * system that cannot sync folders is warned about once: there, after a crash of the host, `latest` may be an older one.
 *
 * Restored to the last bit are parameters, moments, the optimizer's step count, the loss scaler, and what the program keeps
 * in fsdp_checkpoint_state. Learning-rate schedules and samplers are functions of the step, and random numbers of
 * their counter, so that nothing else is needed. Not saved: gradients that no step has used (a save is refused then), the
 * options of optimizers and groups, which the program sets as before, and what fsdp_hook_power_sgd() keeps, which begins again at
 * zero: with it, a resumed run differs from one that was not interrupted. The error feedback of fsdp_hook_int8() is saved, if an
 * optimizer is, and loaded on as many ranks, with as many groups and the same block; else it begins at zero.
 *
 * All functions but fsdp_checkpoint_budget() are collective, like those of fsdp/model.h. Further errors: FSDP_ERR_IO: a file
 * could not be read or written, as on a full disk; FSDP_ERR_FORMAT: a file is damaged or not what it should be. Both name the
 * file and are the same on all ranks.
 */
#ifndef FSDP_CHECKPOINT_H
#define FSDP_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/optimizer.h"
#include "fsdp/status.h"

/** Most BYTES of the path of a checkpoint or its folder, with its NUL. */
#define FSDP_CHECKPOINT_PATH_BYTES 1024

/** BYTES of fsdp_checkpoint_state::text, with its NUL. */
#define FSDP_CHECKPOINT_TEXT_BYTES 1024

/** BYTES of the name of a model, with its NUL. */
#define FSDP_CHECKPOINT_NAME_BYTES 64

/** BYTES of staging that a save takes on each rank while it is under way; a load takes less. */
#define FSDP_CHECKPOINT_SCRATCH_BYTES ((4u << 20) + (256u << 10) + 4096u)

typedef struct fsdp_checkpoint fsdp_checkpoint;

/** What the program needs to resume; the same on all ranks. The library only carries it, and uses `step` alone. */
typedef struct fsdp_checkpoint_state {
    uint64_t step;                             /**< steps taken; also gives the checkpoint its name */
    uint64_t epoch;                            /**< of the sampler */
    uint64_t sample;                           /**< position within that epoch */
    uint64_t seed;                             /**< of the random numbers */
    char     text[FSDP_CHECKPOINT_TEXT_BYTES]; /**< whatever else: UTF-8, "" for nothing */
    uint64_t ranks; /**< set by fsdp_checkpoint_load(): how many ranks saved it. Ignored by a save */
} fsdp_checkpoint_state;

typedef struct fsdp_checkpoint_options {
    size_t size; /**< BYTES of this struct: FSDP_CHECKPOINT_OPTIONS_DEFAULT or fsdp_checkpoint_options_init() sets it */
    /**
     * Type of the parameters in model.safetensors: FSDP_F32, or FSDP_BF16, rounded to nearest even, for half the bytes. With
     * an optimizer, optimizer.safetensors then has the f32 masters too, as NAME.master, so that loading both is exact. Of a model
     * with masters in f64: FSDP_F64; FSDP_F32 and FSDP_BF16 round, and with an optimizer the f64 masters are beside them. A model
     * of the other type may load them: values are rounded once, or are the same. It holds for all models of a checkpoint; of one
     * that has been added, FSDP_F64 means FSDP_F32 where its masters are in f32.
     */
    fsdp_dtype dtype;
    size_t     file_bytes; /**< BYTES of a file above which the next tensor begins another one, bound together by
                                model.safetensors.index.json; 0: always one file */
    size_t     keep_last;  /**< how many of the latest checkpoints stay; 0: all */
    size_t keep_every;   /**< checkpoints whose step is a multiple of this stay for ever; 0: none. Needs `keep_last` */
    int    asynchronous; /**< 1: room for fsdp_checkpoint_save_async() */
    int    cached; /**< 1: room for fsdp_checkpoint_cache(), and fsdp_checkpoint_open() looks for what it has kept */
} fsdp_checkpoint_options;

/** f32, one file, the last 3 stay, saves block, nothing is cached. */
#define FSDP_CHECKPOINT_OPTIONS_DEFAULT                                                                                \
    {                                                                                                                  \
        sizeof(fsdp_checkpoint_options), FSDP_F32, 0, 3, 0, 0, 0                                                       \
    }

/** A tensor in a file whose name begins with `from` is loaded as the one whose name begins with `to` instead. */
typedef struct fsdp_checkpoint_rename {
    const char *from; /**< "" matches every name */
    const char *to;   /**< NULL: such tensors are left out, and are not extra */
} fsdp_checkpoint_rename;

typedef struct fsdp_checkpoint_load_options {
    size_t
        size; /**< BYTES of this struct: FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT or fsdp_checkpoint_load_options_init() sets it */
    int allow_missing;    /**< 1: tensors that are not in the files stay as they are */
    int allow_extra;      /**< 1: tensors that are not in the model are left out */
    int allow_mis_shaped; /**< 1: tensors of another shape, or of integers, stay as they are */

    const fsdp_checkpoint_rename *renames; /**< for the files of models' values; the first that fits counts; or NULL */
    size_t                        n_renames;

    /**
     * The name under which the model to be loaded was added with fsdp_checkpoint_add_model(); NULL: the one without a name. For
     * fsdp_checkpoint_load() of a checkpoint; else NULL.
     */
    const char *model;
} fsdp_checkpoint_load_options;

/** Everything must fit. */
#define FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT                                                                           \
    {                                                                                                                  \
        sizeof(fsdp_checkpoint_load_options), 0, 0, 0, NULL, 0, NULL                                                   \
    }

/**
 * What this rank has of an array: elements `offset` to `offset + extent` in each dimension. In its memory, neighbours in dimension
 * d are `stride[d]` ELEMENTS apart: so an array with ghost layers, or in another order of dimensions, is saved from where it is.
 * All strides 0: the box lies there alone, row-major, the last dimension fastest. What is not set is 0.
 */
typedef struct fsdp_box {
    size_t offset[FSDP_MAX_DIMS];
    size_t extent[FSDP_MAX_DIMS]; /**< 0 in any dimension: this rank has nothing of the array */
    size_t stride[FSDP_MAX_DIMS];
} fsdp_box;

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_CHECKPOINT_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_checkpoint_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_checkpoint_options_init_size(fsdp_checkpoint_options *options, size_t size);
static inline void fsdp_checkpoint_options_init(fsdp_checkpoint_options *options)
{
    fsdp_checkpoint_options_init_size(options, sizeof *options);
}

/**
 * Sets all fields to FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_checkpoint_load_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_checkpoint_load_options_init_size(fsdp_checkpoint_load_options *options, size_t size);
static inline void fsdp_checkpoint_load_options_init(fsdp_checkpoint_load_options *options)
{
    fsdp_checkpoint_load_options_init_size(options, sizeof *options);
}

/**
 * Opens a folder to save checkpoints of a model in; makes it if its parent exists. Locks it until fsdp_checkpoint_close(), or
 * until the program ends in any way: where .owner is the lock, and the program has not closed it, other hosts find it free a minute
 * after that.
 *
 * With `cached` set, it also looks for what an earlier program has kept of this folder with fsdp_checkpoint_cache(). If the newest
 * state that is whole in the caches of all nodes is newer than `latest`, it is written into the folder and becomes the latest
 * checkpoint; so any number of ranks loads it, on any of the nodes. What is left of caches on the nodes is then removed.
 *
 * @param[in]  model       committed; outlives the checkpoint, as does `optimizer`
 * @param[in]  optimizer   of the model, whose state is saved too, with that of all other optimizers that the model has now; or NULL
 * @param[in]  folder      copied, like everything else; a relative path counts from the working folder of this call. The same
 *                         folder for all ranks, which is checked
 * @param[in]  options     or NULL for FSDP_CHECKPOINT_OPTIONS_DEFAULT; the same on all ranks
 * @param[out] checkpoint  the caller closes it, before fsdp_model_destroy()
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, an optimizer of another model, an option out of range, a path that is too
 *         long, a tensor whose name is not UTF-8; FSDP_ERR_STATE: the model is not committed, or another program saves in this
 *         folder (names host and process); FSDP_ERR_IO: the folder cannot be made or written to, or is not the same for all
 *         ranks (names a host); FSDP_ERR_MISMATCH, FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_checkpoint_open(fsdp_model *model, fsdp_optimizer *optimizer, const char *folder,
                                          const fsdp_checkpoint_options *options, fsdp_checkpoint **checkpoint);

/**
 * The same for a program without a model, or whose models all have names: of what fsdp_checkpoint_add() and its kind add.
 *
 * @param[in] ctx  an open context, which outlives the checkpoint
 * @return as fsdp_checkpoint_open()
 */
FSDP_API fsdp_status fsdp_checkpoint_open_folder(fsdp_context *ctx, const char *folder,
                                                 const fsdp_checkpoint_options *options, fsdp_checkpoint **checkpoint);

/**
 * Adds a further model under a name, such as the critic beside an actor, to all that is saved from now on, and to what
 * fsdp_checkpoint_restore() sets. It has files of its own, NAME.model.safetensors and NAME.optimizer.safetensors, divided as
 * `file_bytes` says, and a strategy, optimizers and a loss scaler of its own. All else is the checkpoint's: one `latest`, all or
 * nothing, all checksums, any number of ranks. fsdp_checkpoint_load() loads one of the models, by its name in the options.
 * Collective, in the same order on all ranks; completes an asynchronous save first.
 *
 * On each rank it takes bookkeeping and, with `asynchronous`, room for a copy of what the rank writes of it, as
 * fsdp_checkpoint_open() does for its model; fsdp_checkpoint_budget() has both. A save of several models takes no more staging than
 * one of a single model: FSDP_CHECKPOINT_SCRATCH_BYTES.
 *
 * @param[in] name       1 to FSDP_CHECKPOINT_NAME_BYTES - 1 letters, digits, '_', '-' and '.', of which the first is a letter or a
 *                       digit; not "model", "optimizer", "simulation", "state" or "checksums"; copied
 * @param[in] model      committed, in the context of the checkpoint, which it outlives, as does `optimizer`
 * @param[in] optimizer  of the model, whose state is saved too, with that of all other optimizers that the model has now; or NULL
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a name that is taken or not allowed, a model that the checkpoint has already or
 *         that is in another context, an optimizer of another model, a tensor whose name is not UTF-8; FSDP_ERR_STATE: the model is
 *         not committed; FSDP_ERR_UNSUPPORTED: more than 256 models with names; FSDP_ERR_MISMATCH: not the same name or tensors on
 *         all ranks; FSDP_ERR_MEMORY; or the error of an asynchronous save. The same on every rank, and nothing has been added then.
 */
FSDP_API fsdp_status fsdp_checkpoint_add_model(fsdp_checkpoint *checkpoint, const char *name, fsdp_model *model,
                                               fsdp_optimizer *optimizer);

/**
 * Adds an array of the program to all that is saved from now on, in simulation.safetensors, and to what fsdp_checkpoint_restore()
 * sets. Each save reads it from `memory`: change it between saves as you like. Collective, in the same order on all ranks;
 * completes an asynchronous save first.
 *
 * Either all ranks have all of it, alike: then it is written once, in parts by different ranks, and compared under
 * FSDP_VERIFY=full. Or each rank has a box of it, and the boxes of all ranks tile the array: each element is in exactly one. That
 * is checked here, at the cost of one small allreduce for any number of ranks; only what is wrong is looked for at greater length.
 *
 * Each rank writes the bytes of its own box, those that follow each other in the file in one piece; so boxes that are long in the
 * last dimension are written fastest. Beside the bookkeeping of fsdp_checkpoint_budget(), a save takes 256 KiB. With
 * `asynchronous` this call allocates room for a copy of what the rank writes, which is in the budget as staging.
 *
 * @param[in] name    UTF-8, of any length; not "", not "__metadata__"; copied
 * @param[in] dtype   any of fsdp_dtype; the same on all ranks, like all but `box` and `memory`
 * @param[in] n_dims  0 (a scalar, replicated) to FSDP_MAX_DIMS
 * @param[in] shape   ELEMENTS of the whole array in each dimension; 0 is allowed; copied
 * @param[in] box     copied; NULL: this rank, as every other, has the whole array, row-major without gaps
 * @param[in] memory  host memory: the first element of the box; valid until fsdp_checkpoint_close(). May be NULL for no elements
 * @return FSDP_OK; FSDP_ERR_ARG: a name that is taken or not allowed, more than 2^61 bytes, a box that reaches out of the array,
 *         or boxes that overlap (two ranks are named, with their boxes) or leave elements to no rank (a box of these is named);
 *         FSDP_ERR_MISMATCH: not the same array on all ranks; FSDP_ERR_MEMORY; or the error of an asynchronous save. The same on
 *         every rank, and nothing has been added then.
 */
FSDP_API fsdp_status fsdp_checkpoint_add(fsdp_checkpoint *checkpoint, const char *name, fsdp_dtype dtype, size_t n_dims,
                                         const size_t *shape, const fsdp_box *box, void *memory);

/**
 * Adds bytes of the program that mean something to it alone: a random generator's state, a configuration as JSON, a list that grows.
 * Rank 0's are saved, as a tensor of type U8 in simulation.safetensors, and all ranks are given them by
 * fsdp_checkpoint_restore(). How many there are may differ from save to save. Otherwise as fsdp_checkpoint_add(); with
 * `asynchronous` rank 0 has room for a copy of `room` bytes.
 *
 * @param[in] bytes    host memory for `room` BYTES, above 0, the same on all ranks
 * @param[in] n_bytes  how many of them are saved, on rank 0; set by fsdp_checkpoint_restore(), on all ranks; valid as long as `bytes`
 * @return as fsdp_checkpoint_add(). A save of more than `room` is FSDP_ERR_ARG, as is a restore of more, which names both.
 */
FSDP_API fsdp_status fsdp_checkpoint_add_bytes(fsdp_checkpoint *checkpoint, const char *name, void *bytes, size_t room,
                                               size_t *n_bytes);

/** What each of the rows of fsdp_checkpoint_add_rows() has: a value, or a vector of them. */
typedef struct fsdp_column {
    const char *name; /**< of its tensor, behind that of the rows: NAME.COLUMN */
    fsdp_dtype  dtype;
    size_t width; /**< ELEMENTS per row. The tensor has the shape [rows], or, where this is above 1, [rows, width] */
} fsdp_column;

/**
 * Adds rows that go from rank to rank, each known by a number of its own: particles, agents, cells of a mesh that adapts. They
 * are saved in simulation.safetensors in the order of their numbers, as the tensors NAME.id (I64) and NAME.COLUMN, so that the file
 * does not depend on the ranks. Collective, in the same order on all ranks; completes an asynchronous save first.
 *
 * Before each save every rank says with fsdp_checkpoint_set_rows() which rows it has. fsdp_checkpoint_restore() gives
 * each rank an equal share of all rows, which it reads with fsdp_checkpoint_get_rows() and hands on to where they belong.
 *
 * A save moves each row to the rank that writes it, by three alltoallv at least, and sorts there. For that time a rank holds what it
 * sends and receives of one column, and what it writes of all, which no budget includes, since the number of rows is not
 * known before. The numbers between the least and the greatest are divided evenly: where they are crowded, some ranks write more.
 *
 * @param[in] name       as in fsdp_checkpoint_add(); copied
 * @param[in] n_columns  1 or more
 * @param[in] columns    the same on all ranks; copied
 * @return FSDP_OK; FSDP_ERR_ARG: a name that is taken or not allowed, as NAME.id is for a column, no columns, or a width of 0;
 *         FSDP_ERR_MISMATCH: not the same on all ranks; FSDP_ERR_MEMORY; or the error of an asynchronous save. The same on every
 *         rank, and nothing has been added then.
 */
FSDP_API fsdp_status fsdp_checkpoint_add_rows(fsdp_checkpoint *checkpoint, const char *name, size_t n_columns,
                                              const fsdp_column *columns);

/**
 * Says which rows this rank has, for the next save: this call comes before each, on every rank. Local.
 *
 * @param[in] name     of rows that have been added
 * @param[in] n_rows   0 or more; may differ between ranks and from save to save
 * @param[in] ids      the number of each row, in any order; no two rows of all ranks have the same. NULL for no rows
 * @param[in] columns  of each column its elements, row-major without gaps, in the order of `ids`. NULL for no rows. The array, and
 *                     all that it points to, is read by the next save: valid and unchanged until that call returns, also where it is
 *                     asynchronous
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, or a name that no rows have. That two rows have one number is found by the save,
 *         which names it, on every rank.
 */
FSDP_API fsdp_status fsdp_checkpoint_set_rows(fsdp_checkpoint *checkpoint, const char *name, size_t n_rows,
                                              const int64_t *ids, const void *const *columns);

/**
 * The rows that fsdp_checkpoint_restore() has given this rank: of N rows in the order of their numbers those from
 * N * rank / ranks to N * (rank + 1) / ranks, both rounded down. Local.
 *
 * @param[out] n_rows   of this rank; 0 where `allow_missing` has left them out
 * @param[out] ids      their numbers; NULL if that is not wanted
 * @param[out] columns  room for as many pointers as there are columns: the elements of each. All of it is the checkpoint's,
 *                      valid until the next save or restore, or until it is closed
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, or a name that no rows have; FSDP_ERR_STATE: there has been no restore since the
 *         checkpoint was opened or saved.
 */
FSDP_API fsdp_status fsdp_checkpoint_get_rows(const fsdp_checkpoint *checkpoint, const char *name, size_t *n_rows,
                                              const int64_t **ids, const void **columns);

/**
 * Saves, and returns when the checkpoint is on the disk and `latest` names it. Completes an asynchronous save first. If there
 * already is a checkpoint of that step, the new one's name ends in "-2" and so on.
 *
 * @param[in] state  the same on all ranks; copied
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a text that is not UTF-8; FSDP_ERR_STATE: a pass is open, there are
 *         gradients that no step has used, or another program has taken the folder over; FSDP_ERR_IO: a file could not be
 *         written: what was begun has been removed, `latest` and the checkpoint it names are as before, and the next save may
 *         succeed. Only if the folder could not be synced last of all, the new checkpoint is whole and `latest`, and the error
 *         says that; FSDP_ERR_MISMATCH: states differ; or the error of an asynchronous save that was under way, in which case
 *         nothing new has been begun.
 */
FSDP_API fsdp_status fsdp_checkpoint_save(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state);

/**
 * Copies what this rank writes and returns; a thread writes it while training goes on. It is complete, and its errors are
 * known, only after fsdp_checkpoint_progress() or fsdp_checkpoint_wait(), which the next save and fsdp_checkpoint_close() call.
 * The thread only writes files and calls no MPI, so any thread level will do; its nice value is 10, so that steps come first.
 *
 * @return as fsdp_checkpoint_save(); FSDP_ERR_STATE also where `asynchronous` was not set at open.
 */
FSDP_API fsdp_status fsdp_checkpoint_save_async(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state);

/**
 * Keeps the state in the memory of the nodes, between checkpoints that all nodes share: what this rank would write goes into a
 * file in FSDP_CHECKPOINT_CACHE (/dev/shm, or a folder on a disk of the node), in one copy, and from there, in messages behind the
 * following steps, to a rank of the next node, the last node's to the first. These stay when processes end or a node is lost;
 * fsdp_checkpoint_open() takes over what is newest and whole. Lost are at most the steps behind the last such call if one node is
 * lost, or several of which none follows another; else those behind the last save. On one node there is no copy, and a state
 * survives the processes alone.
 *
 * Each rank keeps two generations of its own state, and two of each rank that sends it copies; they are in the budget as staging,
 * where they lie in memory. The one before the last is overwritten once the last is whole on all nodes, for which this call waits:
 * between two of them, call fsdp_checkpoint_progress() once per step, which also sends. All that a save would write is kept, the
 * program's arrays too: of each row of a box that is not a neighbour of the one before, with 40 bytes about it. With rows or bytes
 * of the program it completes an asynchronous save first; otherwise both may be under way.
 *
 * With FSDP_CHECKPOINT_CACHE=off it only checks its arguments. A node is here the ranks of a host for which that is the same
 * folder; FSDP_NODE_SIZE does not count.
 *
 * @param[in] state  as for fsdp_checkpoint_save()
 * @return FSDP_OK; FSDP_ERR_ARG, FSDP_ERR_MISMATCH, FSDP_ERR_STATE: as fsdp_checkpoint_save(), and where `cached` was not set at open;
 *         FSDP_ERR_IO: there is no room for a state that has grown: the generations before are as they were; FSDP_ERR_MEMORY;
 *         FSDP_ERR_MPI, FSDP_ERR_TIMEOUT: a partner has not taken its copy.
 */
FSDP_API fsdp_status fsdp_checkpoint_cache(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state);

/**
 * Advances an asynchronous save as far as it goes without waiting for files, and copies of cached states without waiting for
 * messages. Call it once per step; it costs one small allreduce while a save is under way, and nothing otherwise.
 *
 * @param[out] done  1 if none is under way any more, the same on all ranks; or NULL
 * @return FSDP_OK; the error of the save, once, with `done` 1: as for fsdp_checkpoint_save().
 */
FSDP_API fsdp_status fsdp_checkpoint_progress(fsdp_checkpoint *checkpoint, int *done);

/** Completes an asynchronous save, and copies of a cached state. @return FSDP_OK, also where none is under way; else the error of the save, once. */
FSDP_API fsdp_status fsdp_checkpoint_wait(fsdp_checkpoint *checkpoint);

/**
 * Completes an asynchronous save, and copies of a cached state, releases the lock and everything else. Caches are removed if `latest`
 * is as new as they are; else they stay, for the next program that opens the folder. NULL does nothing.
 * @return as fsdp_checkpoint_wait()
 */
FSDP_API fsdp_status fsdp_checkpoint_close(fsdp_checkpoint *checkpoint);

/**
 * Adds to a budget what an open checkpoint holds on this rank, and what a save takes: staging and bookkeeping. Local. The
 * text of the files' headers, about 150 bytes per tensor, is not included, nor 56 bytes on rank 0 for each chunk of the
 * checkpoint (up to 4 MiB that one rank holds) while it puts them in order.
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer.
 */
FSDP_API fsdp_status fsdp_checkpoint_budget(const fsdp_checkpoint *checkpoint, fsdp_budget *budget);

/**
 * The path of the checkpoint that `latest` names in a folder; rank 0 looks, and tells all ranks.
 *
 * @param[out] path  "" if there is no such folder, or no `latest` in it
 * @param[in]  size  BYTES of `path`: FSDP_CHECKPOINT_PATH_BYTES or more
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_FORMAT: `latest` names no plain name; FSDP_ERR_IO: it cannot be read, or names a
 *         checkpoint that is not there.
 */
FSDP_API fsdp_status fsdp_checkpoint_latest(fsdp_context *ctx, const char *folder, char *path, size_t size);

/**
 * Sets a model, and the state of an optimizer, from files; each rank reads the bytes it holds. Checks everything before anything
 * changes on any rank: names, shapes, lengths, and for a checkpoint of this library the checksums of all chunks that are needed,
 * which the ranks of a node divide among them. The data is then read a second time, usually from the page cache.
 *
 * Names that only the files have, names that only the model has, and tensors of another shape are each printed at log level
 * `error` and counted in the error; `options` can allow them. A tied tensor is found under any of its names. Any floating
 * type is converted. With an optimizer, the loss scaler resumes from what was saved if both have one.
 *
 * @param[in]  optimizer  NULL: the model alone, as for fine-tuning; else one of the model's optimizers, all of which are set, each
 *                        from what was saved of an optimizer of the same kind and group
 * @param[in]  path       a checkpoint; or a folder with `latest`; or, without an optimizer, a safetensors file from anywhere, or
 *                        an index of several, which ends in ".index.json"
 * @param[in]  options    or NULL for FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT; the same on all ranks
 * @param[out] state      as it was saved, zeros if the files have none; or NULL
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, an optimizer of another model, kind or group, tensors that do not fit, a name that
 *         no model of the checkpoint has (the error lists those there are); FSDP_ERR_STATE: not committed, a pass is open, there are
 *         gradients; FSDP_ERR_FORMAT: a file is damaged, or was written by a newer version; FSDP_ERR_IO; FSDP_ERR_MISMATCH: ranks
 *         see different files; FSDP_ERR_MEMORY. After an error, model and optimizer are as before, unless it says "the state is
 *         undefined, load again": a file that could be read at first could not be read again.
 */
FSDP_API fsdp_status fsdp_checkpoint_load(fsdp_model *model, fsdp_optimizer *optimizer, const char *path,
                                          const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state);

/**
 * Sets all that an open checkpoint consists of from files: the model and its optimizer, as fsdp_checkpoint_load() does, all models
 * that have been added, with theirs, and all arrays that have been added, into the boxes that they have now, whatever boxes of
 * whatever number of ranks were saved. All or nothing: whatever does not fit or is damaged is found before anything changes on any
 * rank. Completes an asynchronous save first.
 *
 * Arrays must have the shape and the type that they were saved with: nothing is converted. What `options` allows counts for them
 * too. Of the checksums of arrays each rank verifies an equal share.
 *
 * @param[in] path  a checkpoint, or a folder with `latest`
 * @return as fsdp_checkpoint_load(); an array that is missing, has not been added, or has another shape or type is named, and
 *         FSDP_ERR_ARG, as is a model with a name that is missing or has not been added. `allow_missing` and `allow_extra` leave
 *         such a model as it is, or out. "The state is undefined" then stands for the arrays too.
 */
FSDP_API fsdp_status fsdp_checkpoint_restore(fsdp_checkpoint *checkpoint, const char *path,
                                             const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state);

FSDP_EXTERN_C_END

#endif
