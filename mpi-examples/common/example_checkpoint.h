/**
 * @file
 * Saving every so many steps, going on from where an earlier run has stopped, and stopping in good order on a signal.
 */
#ifndef EXAMPLE_CHECKPOINT_H
#define EXAMPLE_CHECKPOINT_H

#include <fsdp/fsdp.h>

/** What the command line says. */
typedef struct example_checkpoint_options {
    const char *folder; /* NULL: nothing is saved, and nothing else counts */
    const char *resume; /* "auto", "never", or a path */
    size_t      every;  /* steps from one save to the next */
    size_t      keep;   /* the last so many stay */
    fsdp_dtype  dtype;  /* of the parameters in model.safetensors */
    int         asynchronous;
    size_t      cache; /* steps from one state that the nodes keep to the next; 0: none */
} example_checkpoint_options;

/** The rows of these options, for a structure that has them in its field `checkpoint`. */
#define EXAMPLE_CHECKPOINT_ROWS(structure)                                                                             \
    {"checkpoint",                                                                                                     \
     EXAMPLE_TEXT,                                                                                                     \
     offsetof(structure, checkpoint.folder),                                                                           \
     0,                                                                                                                \
     0,                                                                                                                \
     NULL,                                                                                                             \
     "folder to save checkpoints in, and to go on from; when SIGUSR1 or SIGTERM reaches a rank, one is saved and the " \
     "program ends with status 75"},                                                                                   \
        {"every",                                                                                                      \
         EXAMPLE_SIZE,                                                                                                 \
         offsetof(structure, checkpoint.every),                                                                        \
         1,                                                                                                            \
         EXAMPLE_MOST_SIZE,                                                                                            \
         NULL,                                                                                                         \
         "steps from one checkpoint to the next; the last step is saved too"},                                         \
        {"keep",                                                                                                       \
         EXAMPLE_SIZE,                                                                                                 \
         offsetof(structure, checkpoint.keep),                                                                         \
         0,                                                                                                            \
         EXAMPLE_MOST_SIZE,                                                                                            \
         NULL,                                                                                                         \
         "how many of the latest checkpoints stay; 0: all"},                                                           \
        {"resume",                                                                                                     \
         EXAMPLE_TEXT,                                                                                                 \
         offsetof(structure, checkpoint.resume),                                                                       \
         0,                                                                                                            \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "auto: from the latest checkpoint of the folder, if there is one; never; or the path of a checkpoint"},       \
        {"save-dtype",                                                                                                 \
         EXAMPLE_DTYPE,                                                                                                \
         offsetof(structure, checkpoint.dtype),                                                                        \
         0,                                                                                                            \
         0,                                                                                                            \
         example_save_dtypes,                                                                                          \
         "type of the parameters in model.safetensors: f32 or bf16; masters in f32 are beside it then"},               \
        {"async",                                                                                                      \
         EXAMPLE_FLAG,                                                                                                 \
         offsetof(structure, checkpoint.asynchronous),                                                                 \
         0,                                                                                                            \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "write checkpoints behind the following steps, from a copy"},                                                 \
    {                                                                                                                  \
        "cache", EXAMPLE_SIZE, offsetof(structure, checkpoint.cache), 0, EXAMPLE_MOST_SIZE, NULL,                      \
            "steps from one state to the next that the nodes keep in memory, each for itself and the one before it, "  \
            "between checkpoints; 0: none"                                                                             \
    }

extern const char *const example_save_dtypes[];

#define EXAMPLE_CHECKPOINT_OPTIONS_DEFAULT                                                                             \
    {                                                                                                                  \
        NULL, "auto", 100, 3, FSDP_F32, 0, 0                                                                           \
    }

typedef struct example_checkpoint {
    const example_checkpoint_options *options;
    fsdp_context                     *ctx;
    fsdp_checkpoint                  *saver;   /* NULL without --checkpoint */
    int                               stopped; /* the signal that has ended training; 0 */
    int                               saved;   /* whether the last example_checkpoint_step() has */
} example_checkpoint;

/** Adds the program's own arrays to a checkpoint that has been opened: see fsdp_checkpoint_add(). Collective. */
typedef fsdp_status (*example_checkpoint_arrays)(fsdp_checkpoint *saver);

/**
 * Opens the folder, and goes on from a checkpoint as the options say: sets model, optimizer and `state`. Collective.
 *
 * @param[in,out] state   `text` says what the program trains: it must be that of the checkpoint; the rest is that of a
 *                        beginning
 * @param[in,out] budget  what saves take is added
 * @return FSDP_OK; another status: rank 0 or the library has said why. Close it all the same.
 */
fsdp_status example_checkpoint_open(example_checkpoint *checkpoint, const example_checkpoint_options *options,
                                    fsdp_model *model, fsdp_optimizer *optimizer, fsdp_context *ctx,
                                    fsdp_checkpoint_state *state, fsdp_budget *budget);

/** The same, with arrays of the program: whatever goes on from a checkpoint sets them too. */
fsdp_status example_checkpoint_open_with(example_checkpoint *checkpoint, const example_checkpoint_options *options,
                                         fsdp_model *model, fsdp_optimizer *optimizer, fsdp_context *ctx,
                                         fsdp_checkpoint_state *state, fsdp_budget *budget,
                                         example_checkpoint_arrays add_arrays);

/**
 * Behind each step: keeps the state in the nodes if it is time, saves if it is time, or if it is the last one, or if a signal has come on any rank: then `stopped` is set,
 * and training ends here. Collective. `state`: as after this step.
 */
fsdp_status example_checkpoint_step(example_checkpoint *checkpoint, const fsdp_checkpoint_state *state, int last);

/** Completes what is being saved. Collective. */
fsdp_status example_checkpoint_close(example_checkpoint *checkpoint);

/** Which status main() returns: what was printed and cannot be written is a failure. */
int example_exit_status(fsdp_status status, int stopped);

#endif
