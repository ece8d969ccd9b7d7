/*
 * state.json of several models: what is written is read again; names of models, after which files are named, are those that may be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/format/state.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

static fsdpi_problem problem;

/* Writes a state, and reads its text. The caller frees what is found. */
static fsdp_status read_again(const fsdpi_state *written, fsdpi_state *found)
{
    char  *text;
    size_t bytes;

    assert_int_equal(FSDP_OK, fsdpi_state_write(written, &text, &bytes, &problem));
    const fsdp_status status = fsdpi_state_parse("state.json", text, bytes, found, &problem);
    free(text);
    return status;
}

static void assert_same_model(const fsdpi_model_state *a, const fsdpi_model_state *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->strategy, b->strategy);
    assert_int_equal(a->has_optimizer, b->has_optimizer);
    assert_string_equal(a->optimizer, b->optimizer);
    assert_int_equal(a->optimizer_steps, b->optimizer_steps);
    assert_int_equal(a->n_group_optimizers, b->n_group_optimizers);
    for (size_t i = 0; i < a->n_group_optimizers; i++) {
        assert_string_equal(a->group_optimizers[i].group, b->group_optimizers[i].group);
        assert_string_equal(a->group_optimizers[i].kind, b->group_optimizers[i].kind);
        assert_int_equal(a->group_optimizers[i].steps, b->group_optimizers[i].steps);
    }
    assert_int_equal(a->has_scaler, b->has_scaler);
    assert_true(a->scaler.scale == b->scaler.scale && a->scaler.clean_steps == b->scaler.clean_steps);
}

static void what_is_written_of_models_is_read_again(void **state)
{
    fsdpi_model_state critic  = {.name = "critic", .strategy = "NO_SHARD", .has_scaler = true, .scaler = {512.0, 3, 1}};
    fsdpi_model_state actor   = {.next               = &critic,
                                 .name               = "actor",
                                 .strategy           = "FULL_SHARD",
                                 .has_optimizer      = true,
                                 .optimizer          = "lion",
                                 .optimizer_steps    = 7,
                                 .n_group_optimizers = 1,
                                 .group_optimizers   = {{.group = "*.bias", .kind = "sgd", .steps = 6}}};
    fsdpi_model_state unnamed = {
        .next = &actor, .strategy = "SHARD_OPTIM", .has_optimizer = true, .optimizer = "adamw"};
    fsdpi_state written = {.models = &unnamed}, found;
    char        names[64];

    (void)state;
    assert_int_equal(FSDP_OK, read_again(&written, &found));
    const fsdpi_model_state *model = found.models;
    for (const fsdpi_model_state *one = &unnamed; one != NULL; one = one->next, model = model->next) {
        assert_same_model(one, model);
    }
    assert_null(model);
    assert_string_equal("critic", fsdpi_state_model(&found, "critic")->name);
    assert_null(fsdpi_state_model(&found, "nobody"));
    assert_string_equal("'actor', 'critic'", fsdpi_state_names(&found, names, sizeof names));
    (void)fsdpi_state_names(&found, names, 5); /* as far as there is room */
    assert_string_equal("'act", names);
    fsdpi_state_free(&found);

    written.models = &actor; /* without one that has no name, whose place is first all the same */
    assert_int_equal(FSDP_OK, read_again(&written, &found));
    assert_string_equal("", found.models->name);
    assert_false(found.models->has_optimizer);
    assert_same_model(&actor, found.models->next);
    fsdpi_state_free(&found);

    written.models = NULL;
    assert_int_equal(FSDP_OK, read_again(&written, &found));
    assert_null(found.models->next);
    assert_string_equal("none", fsdpi_state_names(&found, names, sizeof names));
    fsdpi_state_free(&found);
}

static void names_that_lead_elsewhere_or_come_twice_are_refused(void **state)
{
    static const char *const bad[]  = {"../critic", ".critic", "a/b", "", "model", "optimizer", "a\n", "caf\xc3\xa9"};
    fsdpi_model_state        second = {.name = "critic"}, first = {.next = &second, .name = "critic"};
    const fsdpi_state        written = {.models = &first};
    fsdpi_state              found;

    (void)state;
    assert_int_equal(FSDP_ERR_FORMAT, read_again(&written, &found));
    test_contains(problem.text, "is 'critic': it comes twice");
    assert_null(found.models);
    first.next = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fsdpi_model_state unnamed = {.next = &first};

        (void)snprintf(first.name, sizeof first.name, "%s", bad[i]);
        assert_int_equal(FSDP_ERR_FORMAT, read_again(&(fsdpi_state){.models = &unnamed}, &found));
        assert_null(found.models);
        assert_non_null(fsdpi_model_name_wrong(bad[i]));
    }
    assert_null(fsdpi_model_name_wrong("7-b_C.d"));
}

static void more_models_than_are_possible_are_refused(void **state)
{
    fsdpi_model_state *models = calloc(FSDPI_MOST_NAMED_MODELS + 1, sizeof *models);
    fsdpi_state        found;

    (void)state;
    assert_non_null(models);
    for (int i = 0; i <= FSDPI_MOST_NAMED_MODELS; i++) {
        (void)snprintf(models[i].name, sizeof models[i].name, "m%d", i);
        models[i].next = i < FSDPI_MOST_NAMED_MODELS ? &models[i + 1] : NULL;
    }
    assert_int_equal(FSDP_ERR_FORMAT, read_again(&(fsdpi_state){.models = models}, &found));
    test_contains(problem.text, "has 257 members; at most 256 are possible");
    assert_int_equal(FSDP_OK, read_again(&(fsdpi_state){.models = models + 1}, &found));
    assert_non_null(fsdpi_state_model(&found, "m256"));
    fsdpi_state_free(&found);
    free(models);
}

static void stems_are_told_from_each_other(void **state)
{
    fsdpi_file_sums files[] = {{.name = "critic.model.safetensors"}, {.name = "optimizer.safetensors.index.json"}};
    fsdpi_state     found   = {.sums = {.n_files = 2, .files = files}};
    char            stem[FSDPI_STEM_BYTES];

    (void)state;
    assert_string_equal("model", fsdpi_model_stem("", FSDPI_MODEL_STEM, stem));
    assert_string_equal("critic.optimizer", fsdpi_model_stem("critic", FSDPI_OPTIMIZER_STEM, stem));
    assert_true(fsdpi_state_has_files(&found, "critic.model") && fsdpi_state_has_files(&found, "optimizer"));
    assert_false(fsdpi_state_has_files(&found, "model") || fsdpi_state_has_files(&found, "critic.optimizer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_of_models_is_read_again),
        cmocka_unit_test(names_that_lead_elsewhere_or_come_twice_are_refused),
        cmocka_unit_test(more_models_than_are_possible_are_refused),
        cmocka_unit_test(stems_are_told_from_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
