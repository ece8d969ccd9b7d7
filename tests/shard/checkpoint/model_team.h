/**
 * @file
 * Models of one context that are saved together: other strategies, optimizers and seeds for each. Their training gives the same bits
 * on any ranks under any strategy, and their hashes are known from models that were never saved.
 */
#ifndef FSDP_TESTS_MODEL_TEAM_H
#define FSDP_TESTS_MODEL_TEAM_H

#include "tests/shard/checkpoint/saved_model.h"

enum { TEAM_MOST = 3, TEAM_STEP = 6 };

/** What is trained, for how many steps, and under which name it is saved; the first is the one without a name in some tests. */
typedef struct team_member {
    const char         *name;
    fsdp_strategy       strategy;
    fsdp_optimizer_kind kind;
    uint64_t            seed;
    size_t              steps;
} team_member;

extern const team_member TEAM[TEAM_MOST];

/** Hashes of their parameters after those steps, and after one more, which tells of the moments. */
extern uint64_t team_saved_hash[TEAM_MOST], team_next_hash[TEAM_MOST];

typedef struct team {
    MPI_Comm         comm;
    fsdp_context    *ctx;
    int              rank, size;
    size_t           n;
    saved_model      members[TEAM_MOST];
    fsdp_checkpoint *checkpoint;
    int              first_is_unnamed;
} team;

/** cmocka's setup of a group: saved_folder_make(), and the hashes. */
int team_references_make(void **state);

/** The first `n` models on the first `size` ranks; 0 on others. `turn`: other strategies than those in the table. */
int team_open(team *t, int size, size_t n, int turn);

/** With its checkpoint, unless that is NULL. */
void team_close(team *t);

/** Opens a folder, with the first model or with none; the others are not added yet. */
void team_open_folder(team *t, const char *folder, int first_is_unnamed, const fsdp_checkpoint_options *options);

/** Adds one, or all but an unnamed one. */
void team_add(team *t, size_t i);
void team_add_all(team *t);

/** The steps of the table, and `n` behind these. */
void team_train(team *t);
void team_train_further(team *t, size_t n);

fsdp_status team_save(const team *t, uint64_t step);

/** Trained models of all ranks, saved once as TEAM_STEP, and left open; the first is the one without a name. */
void team_save_once(team *t, const char *folder, size_t n, const fsdp_checkpoint_options *options);

/** Loads the model of a name, NULL for none, into member `into`. */
fsdp_status team_load(const team *t, size_t into, const char *name, int with_optimizer, const char *path);

uint64_t team_hash(const saved_model *m);

/** A member is as it was after the steps of the table; and all are, and their next step gives what it would have given. */
void team_expect_saved(const team *t, size_t i);
void team_expect_resumed(team *t);

/** A path in the folder of the test; the last four stay. */
const char *team_path(const char *name);

#endif
