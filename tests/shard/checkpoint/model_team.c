#include "tests/shard/checkpoint/model_team.h"

#include <stdio.h>
#include <stdlib.h>

const team_member TEAM[TEAM_MOST] = {
    {"actor", FSDP_FULL_SHARD, FSDP_ADAMW, 7, 3},
    {"critic", FSDP_NO_SHARD, FSDP_SGD_MOMENTUM, 8, 1},
    {"Target-net_2.x", FSDP_SHARD_GRAD_OP, FSDP_LION, 9, 2},
};

uint64_t team_saved_hash[TEAM_MOST], team_next_hash[TEAM_MOST];

uint64_t team_hash(const saved_model *m)
{
    uint64_t hash;

    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &hash));
    return hash;
}

const char *team_path(const char *name)
{
    static char paths[4][400];
    static int  next;
    char       *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", saved_folder, name);
    return path;
}

static fsdp_model_options options_of(size_t member, int size, int turn)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.seed       = TEAM[member].seed;
    options.strategy   = (fsdp_strategy)(((int)TEAM[member].strategy + turn) % FSDP_N_STRATEGIES);
    options.group_size = size % 2 == 0 ? 2 : 1;
    return options;
}

int team_open(team *t, int size, size_t n, int turn)
{
    *t = (team){.rank = fsdp_test_rank(), .size = size, .n = n};
    MPI_Comm_split(MPI_COMM_WORLD, t->rank < size ? 0 : MPI_UNDEFINED, 0, &t->comm);
    if (t->rank >= size) {
        return 0;
    }
    assert_int_equal(FSDP_OK, fsdp_init(t->comm, NULL, &t->ctx));
    for (size_t i = 0; i < n; i++) {
        const fsdp_model_options options = options_of(i, size, turn);

        saved_model_make(&t->members[i], t->ctx, &options, TEAM[i].kind);
    }
    return 1;
}

void team_close(team *t)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t->checkpoint));
    for (size_t i = 0; i < t->n; i++) {
        fsdp_model_destroy(t->members[i].model);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(t->ctx));
    MPI_Comm_free(&t->comm);
}

void team_open_folder(team *t, const char *folder, int first_is_unnamed, const fsdp_checkpoint_options *options)
{
    t->first_is_unnamed = first_is_unnamed;
    if (first_is_unnamed) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_open(t->members[0].model, t->members[0].optimizer, team_path(folder),
                                                       options, &t->checkpoint));
    } else {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(t->ctx, team_path(folder), options, &t->checkpoint));
    }
}

void team_add(team *t, size_t i)
{
    assert_int_equal(
        FSDP_OK, fsdp_checkpoint_add_model(t->checkpoint, TEAM[i].name, t->members[i].model, t->members[i].optimizer));
}

void team_add_all(team *t)
{
    for (size_t i = t->first_is_unnamed ? 1 : 0; i < t->n; i++) {
        team_add(t, i);
    }
}

void team_train(team *t)
{
    for (size_t i = 0; i < t->n; i++) {
        saved_model_train(&t->members[i], 0, TEAM[i].steps);
    }
}

void team_train_further(team *t, size_t n)
{
    for (size_t i = 0; i < t->n; i++) {
        saved_model_train(&t->members[i], TEAM[i].steps, n);
    }
}

void team_expect_saved(const team *t, size_t i)
{
    assert_true(team_saved_hash[i] == team_hash(&t->members[i]));
    assert_int_equal(TEAM[i].steps, fsdp_optimizer_steps(t->members[i].optimizer));
}

void team_expect_resumed(team *t)
{
    for (size_t i = 0; i < t->n; i++) {
        team_expect_saved(t, i);
    }
    team_train_further(t, 1);
    for (size_t i = 0; i < t->n; i++) {
        assert_true(team_next_hash[i] == team_hash(&t->members[i]));
    }
}

fsdp_status team_save(const team *t, uint64_t step)
{
    return fsdp_checkpoint_save(t->checkpoint, &(fsdp_checkpoint_state){.step = step, .text = "of all"});
}

void team_save_once(team *t, const char *folder, size_t n, const fsdp_checkpoint_options *options)
{
    assert_true(team_open(t, fsdp_test_size(), n, 0));
    team_open_folder(t, folder, 1, options);
    team_add_all(t);
    team_train(t);
    assert_int_equal(FSDP_OK, team_save(t, TEAM_STEP));
}

int team_references_make(void **state)
{
    uint64_t hashes[2 * TEAM_MOST] = {0};

    (void)saved_folder_make(state);
    if (fsdp_test_rank() == 0) {
        for (size_t i = 0; i < TEAM_MOST; i++) {
            const fsdp_model_options options = options_of(i, 1, 0);
            saved_model              m       = {.comm = MPI_COMM_NULL};

            MPI_Comm_dup(MPI_COMM_SELF, &m.comm);
            saved_model_open_on(&m, &options, TEAM[i].kind);
            saved_model_train(&m, 0, TEAM[i].steps);
            hashes[2 * i] = team_hash(&m);
            saved_model_train(&m, TEAM[i].steps, 1);
            hashes[2 * i + 1] = team_hash(&m);
            saved_model_close(&m);
        }
    }
    MPI_Bcast(hashes, 2 * TEAM_MOST, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < TEAM_MOST; i++) {
        team_saved_hash[i] = hashes[2 * i];
        team_next_hash[i]  = hashes[2 * i + 1];
        assert_true(team_saved_hash[i] != team_next_hash[i] &&
                    (i == 0 || team_saved_hash[i] != team_saved_hash[i - 1]));
    }
    return 0;
}

fsdp_status team_load(const team *t, size_t into, const char *name, int with_optimizer, const char *path)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;

    options.model = name;
    return fsdp_checkpoint_load(t->members[into].model, with_optimizer ? t->members[into].optimizer : NULL,
                                team_path(path), &options, NULL);
}
