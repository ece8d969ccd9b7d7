/*
 * What is wrong with one of several models is found before any of them changes, and is the same error on every rank: names,
 * models, what does not fit, damaged files, a disk that is full.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/shard/checkpoint/model_team.h"

/* ---- what is wrong ------------------------------------------------------------------------------------------------- */

static fsdp_status add_as(const team *t, const char *name, size_t i)
{
    return fsdp_checkpoint_add_model(t->checkpoint, name, t->members[i].model, t->members[i].optimizer);
}

static void bad_names_are_refused_on_every_rank(void **state)
{
    static const struct {
        const char *name, *says;
    } BAD[] = {
        {NULL, "the name is missing"},
        {"", "the name is missing"},
        {".critic", "'.critic': the name does not begin with a letter or a digit"},
        {"-critic", "'-critic': the name does not begin"},
        {"..", "'..': the name does not begin"},
        {"a/b", "'a/b': the name has another character"},
        {"a b", "'a b': the name has another character than letters, digits, '_', '-' and '.'"},
        {"caf\xc3\xa9", "the name has another character"},
        {"model", "'model': the name is that of a checkpoint's own files; choose another"},
        {"optimizer", "'optimizer': the name is that of"},
        {"simulation", "'simulation': the name is that of"},
        {"state", "'state': the name is that of"},
        {"checksums", "'checksums': the name is that of"},
    };
    char longest[FSDP_CHECKPOINT_NAME_BYTES + 1];
    team t;

    (void)state;
    assert_true(team_open(&t, fsdp_test_size(), 2, 0));
    team_open_folder(&t, "bad-names", 1, NULL);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        const int one = t.rank == (int)i % t.size; /* which finds it; the others are told */

        assert_int_equal(FSDP_ERR_ARG, add_as(&t, one ? BAD[i].name : "critic", 1));
        assert_says(t.ctx, one ? BAD[i].says : "fsdp_checkpoint_add_model");
    }
    memset(longest, 'x', sizeof longest);
    longest[FSDP_CHECKPOINT_NAME_BYTES] = '\0';
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, longest, 1));
    assert_says(t.ctx, "the name is too long; at most FSDP_CHECKPOINT_NAME_BYTES - 1 = 63");
    longest[FSDP_CHECKPOINT_NAME_BYTES - 1] = '\0';
    assert_int_equal(FSDP_OK, add_as(&t, longest, 1)); /* nothing has been added before */
    team_train(&t);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    team_train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("bad-names"), NULL, NULL));
    team_expect_resumed(&t);
    team_close(&t);
}

static void bad_models_are_refused_on_every_rank(void **state)
{
    const fsdp_tensor bad_name = {.name = "w\xff", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32};
    fsdp_context     *other_ctx;
    fsdp_model       *raw, *elsewhere;
    fsdp_unit        *unit;
    team              t;

    (void)state;
    assert_true(team_open(&t, fsdp_test_size(), TEAM_MOST, 0));
    team_open_folder(&t, "bad-models", 1, NULL);
    fsdp_checkpoint *c  = t.checkpoint;
    const int        me = t.rank == t.size - 1; /* the one that is wrong */

    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(NULL, "x", t.members[1].model, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(c, "x", me ? NULL : t.members[1].model, NULL));
    assert_says(t.ctx, me ? "the model is NULL" : "fsdp_checkpoint_add_model");
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_checkpoint_add_model(c, "x", t.members[1].model, t.members[me ? 2 : 1].optimizer));
    assert_says(t.ctx, me ? "model 'x': the optimizer belongs to another model" : "fsdp_checkpoint_add_model");
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "x", 0));
    assert_says(t.ctx, "model 'x': the checkpoint was opened with this model");
    team_add(&t, 1);
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "x", 1));
    assert_says(t.ctx, "this model has been added as 'critic'; add each once");
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "critic", 2));
    assert_says(t.ctx, "model 'critic': there is a model of that name already; rename one of them");

    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &raw));
    assert_int_equal(FSDP_OK, fsdp_unit_add(raw, "u", &bad_name, 1, &unit));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_add_model(c, "raw", raw, NULL));
    assert_says(t.ctx, "model 'raw': the model is not committed; call fsdp_model_commit first");
    assert_int_equal(FSDP_OK, fsdp_model_commit(raw));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(c, "raw", raw, NULL));
    assert_says(t.ctx, "the name is not UTF-8: byte 1 is 0xff");
    fsdp_model_destroy(raw);

    assert_int_equal(FSDP_OK, fsdp_init(t.comm, NULL, &other_ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(other_ctx, NULL, &elsewhere));
    assert_int_equal(FSDP_OK, fsdp_unit_add(elsewhere, "u", &SAVED_TENSORS[0], 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(elsewhere));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(c, "elsewhere", elsewhere, NULL));
    assert_says(t.ctx, "model 'elsewhere': the model is in another context than the checkpoint");
    fsdp_model_destroy(elsewhere);
    assert_int_equal(FSDP_OK, fsdp_finalize(other_ctx));

    team_add(&t, 2); /* and all is as it was */
    team_train(&t);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    team_train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(c, team_path("bad-models"), NULL, NULL));
    team_expect_resumed(&t);
    team_close(&t);
}

/* Another name, no optimizer, or other tensors on one rank. */
static void ranks_that_add_different_models_are_told(void **state)
{
    fsdp_model *one, *more;
    fsdp_unit  *unit;
    team        t;

    (void)state;
    assert_true(team_open(&t, fsdp_test_size(), 2, 0));
    team_open_folder(&t, "mismatch", 1, NULL);
    const int         me      = t.rank == t.size - 1;
    const fsdp_status differs = t.size > 1 ? FSDP_ERR_MISMATCH : FSDP_OK;
    if (t.size > 1) {
        assert_int_equal(differs, add_as(&t, me ? "critic" : "Critic", 1));
        assert_int_equal(differs, fsdp_checkpoint_add_model(t.checkpoint, "critic", t.members[1].model,
                                                            me ? NULL : t.members[1].optimizer));
    }
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &one));
    assert_int_equal(FSDP_OK, fsdp_unit_add(one, "u", &SAVED_TENSORS[0], 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(one));
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &more));
    assert_int_equal(FSDP_OK, fsdp_unit_add(more, "u", &SAVED_TENSORS[0], 2, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(more));
    assert_int_equal(differs, fsdp_checkpoint_add_model(t.checkpoint, "z", me ? more : one, NULL));
    if (t.size > 1) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t.checkpoint, "z", one, NULL));
    }
    team_add(&t, 1);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("mismatch"), NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    fsdp_model_destroy(more);
    fsdp_model_destroy(one);
    team_close(&t);
}

static void a_model_that_cannot_be_saved_now_is_named(void **state)
{
    team t;

    (void)state;
    assert_true(team_open(&t, fsdp_test_size(), 2, 0));
    team_open_folder(&t, "not-now", 1, NULL);
    team_add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(t.members[1].units[0]));
    assert_int_equal(FSDP_ERR_STATE, team_save(&t, 1));
    assert_says(t.ctx, "model 'critic'");
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_restore(t.checkpoint, team_path("not-now"), NULL, NULL));
    assert_says(t.ctx, "model 'critic'");
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(t.members[1].units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(t.members[1].units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(t.members[1].units[0]));
    assert_int_equal(FSDP_ERR_STATE, team_save(&t, 1));
    assert_says(t.ctx, "model 'critic': there are gradients that no step has used");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(t.members[1].model));
    assert_int_equal(FSDP_OK, team_save(&t, 1));
    team_close(&t);
}

static void models_that_are_missing_or_extra_are_named_and_nothing_changes(void **state)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    team                         t;

    (void)state;
    team_save_once(&t, "fits", 2, NULL); /* one without a name, and the critic */
    team_close(&t);

    assert_true(team_open(&t, fsdp_test_size(), TEAM_MOST, 0));
    team_open_folder(&t, "fits-again", 1, NULL);
    team_train(&t);
    team_train_further(&t, 1);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, team_path("fits"), NULL, NULL));
    assert_says(t.ctx,
                "1 extra, 0 of another shape or type; the first: model 'critic' is in the checkpoint and has not");
    assert_says(t.ctx, "allow_extra");
    team_add(&t, 2);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, team_path("fits"), NULL, NULL));
    assert_says(t.ctx, "1 missing, 1 extra");
    assert_says(t.ctx, "model 'Target-net_2.x' is missing in the checkpoint");
    assert_true(team_next_hash[0] == team_hash(&t.members[0]));
    options.allow_missing = options.allow_extra = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("fits"), &options, NULL));
    team_expect_saved(&t, 0);
    assert_true(team_next_hash[1] == team_hash(&t.members[1]) && team_next_hash[2] == team_hash(&t.members[2]));
    assert_int_equal(TEAM[2].steps + 1, fsdp_optimizer_steps(t.members[2].optimizer));
    team_close(&t);
}

/* In a checkpoint of one model, as it has always been written, there are none with names. */
static void a_checkpoint_of_one_model_restores_into_several(void **state)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    team                         t;

    (void)state;
    team_save_once(&t, "one", 1, NULL);
    team_close(&t);
    assert_true(team_open(&t, fsdp_test_size(), 2, 1));
    team_open_folder(&t, "one-again", 1, NULL);
    team_add_all(&t);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, team_path("one"), NULL, NULL));
    assert_says(t.ctx, "1 missing, 0 extra");
    options.allow_missing = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("one"), &options, NULL));
    team_expect_saved(&t, 0);
    team_close(&t);

    team_save_once(&t, "both", 2, NULL); /* a model without a name that nobody wants is left out, as before */
    team_close(&t);
    assert_true(team_open(&t, fsdp_test_size(), 2, 1));
    team_open_folder(&t, "only-the-critic", 0, NULL);
    team_add(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("both"), NULL, NULL));
    team_expect_saved(&t, 1);
    team_close(&t);
}

/* ---- damage and full disks ------------------------------------------------------------------------------------------ */

static void flip(const char *path, long at)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        FILE *f = fopen(path, "r+b");

        assert_non_null(f);
        assert_int_equal(0, fseek(f, at, at < 0 ? SEEK_END : SEEK_SET));
        const int byte = fgetc(f);
        assert_int_equal(0, fseek(f, -1, SEEK_CUR));
        assert_true(fputc(byte ^ 4, f) != EOF);
        assert_int_equal(0, fclose(f));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void damage_in_any_model_is_named_and_none_changes(void **state)
{
    static const char *const files[]  = {"critic.model.safetensors", "critic.optimizer.safetensors",
                                         "Target-net_2.x.model.safetensors", "Target-net_2.x.optimizer.safetensors"};
    static const long        places[] = {20, 5000, -3};
    char                     path[512];
    team                     t;

    (void)state;
    team_save_once(&t, "damage", TEAM_MOST, NULL);
    team_train_further(&t, 1);
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            (void)snprintf(path, sizeof path, "%s/step-%09d/%s", team_path("damage"), TEAM_STEP, files[f]);
            flip(path, places[i]);
            assert_int_equal(FSDP_ERR_FORMAT, fsdp_checkpoint_restore(t.checkpoint, team_path("damage"), NULL, NULL));
            assert_int_equal(FSDP_ERR_FORMAT, team_load(&t, f / 2 + 1, TEAM[f / 2 + 1].name, 1, "damage"));
            if (t.size == 1) { /* else another rank may have found it */
                assert_says(t.ctx, files[f]);
            }
            assert_int_equal(FSDP_OK, team_load(&t, 0, NULL, 0, "damage")); /* of which nothing is damaged */
            assert_true(team_saved_hash[0] == team_hash(&t.members[0]));
            flip(path, places[i]);
        }
    }
    assert_true(team_next_hash[1] == team_hash(&t.members[1]) && team_next_hash[2] == team_hash(&t.members[2]));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("damage"), NULL, NULL));
    team_expect_resumed(&t);
    team_close(&t);
}

static void a_file_that_is_gone_is_named(void **state)
{
    char path[512];
    team t;

    (void)state;
    team_save_once(&t, "gone", 2, NULL);
    (void)snprintf(path, sizeof path, "%s/step-%09d/critic.optimizer.safetensors", team_path("gone"), TEAM_STEP);
    MPI_Barrier(MPI_COMM_WORLD);
    if (t.rank == 0) {
        assert_int_equal(0, remove(path));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_restore(t.checkpoint, team_path("gone"), NULL, NULL));
    assert_says(t.ctx, "critic.optimizer.safetensors");
    assert_int_equal(FSDP_OK, team_load(&t, 0, NULL, 1, "gone"));
    team_close(&t);
}

/* A limit on the size of files, as on a full disk, which the model without a name does not reach. */
static void limit_files(int limited)
{
    struct rlimit limit;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = limited ? 3000 : limit.rlim_max;
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
}

static void a_save_that_fails_in_one_model_leaves_the_last_checkpoint(void **state)
{
    const fsdp_tensor       w       = {.name = "w", .n_dims = 1, .shape = {10}, .dtype = FSDP_F32, .a = 2.0};
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    char                    path[FSDP_CHECKPOINT_PATH_BYTES];
    fsdp_model             *small;
    fsdp_unit              *unit;
    team                    t;

    (void)state;
    options.asynchronous = 1;
    assert_true(team_open(&t, fsdp_test_size(), 2, 0));
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &small));
    assert_int_equal(FSDP_OK, fsdp_unit_add(small, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(small));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(small, NULL, team_path("full"), &options, &t.checkpoint));
    team_add_all(&t);
    team_train(&t);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    team_train_further(&t, 1);
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        limit_files(t.rank == (t.size > 1 ? 1 : 0));
        fsdp_status status = asynchronous
                                 ? fsdp_checkpoint_save_async(t.checkpoint, &(fsdp_checkpoint_state){.step = 7})
                                 : team_save(&t, 7);
        if (asynchronous && status == FSDP_OK) { /* the one rank that makes files finds it at once */
            status = fsdp_checkpoint_wait(t.checkpoint);
        }
        limit_files(0);
        assert_int_equal(FSDP_ERR_IO, status);
        assert_says(t.ctx, ".model.safetensors");
        assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(t.ctx, team_path("full"), path, sizeof path));
        assert_string_equal("step-000000006", strrchr(path, '/') + 1);
        assert_true(team_next_hash[0] == team_hash(&t.members[0]) && team_next_hash[1] == team_hash(&t.members[1]));
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("full"), NULL, NULL));
    team_expect_resumed(&t);
    assert_int_equal(FSDP_OK, team_save(&t, 8));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    fsdp_model_destroy(small);
    team_close(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_names_are_refused_on_every_rank),
        cmocka_unit_test(bad_models_are_refused_on_every_rank),
        cmocka_unit_test(ranks_that_add_different_models_are_told),
        cmocka_unit_test(a_model_that_cannot_be_saved_now_is_named),
        cmocka_unit_test(models_that_are_missing_or_extra_are_named_and_nothing_changes),
        cmocka_unit_test(a_checkpoint_of_one_model_restores_into_several),
        cmocka_unit_test(damage_in_any_model_is_named_and_none_changes),
        cmocka_unit_test(a_file_that_is_gone_is_named),
        cmocka_unit_test(a_save_that_fails_in_one_model_leaves_the_last_checkpoint),
    };

    return fsdp_test_main(argc, argv, tests, team_references_make, saved_folder_remove);
}
