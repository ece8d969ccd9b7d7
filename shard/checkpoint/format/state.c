#include "shard/checkpoint/format/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/version.h"
#include "lib/base/error.h"
#include "shard/checkpoint/format/checksums_file.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/format/tensor_files.h"
#include "shard/checkpoint/format/text.h"

#define FORMAT "libfsdp checkpoint"

/* ---- its models ----------------------------------------------------------------------------------------------------- */

const fsdpi_model_state *fsdpi_state_model(const fsdpi_state *state, const char *name)
{
    for (const fsdpi_model_state *model = state->models; model != NULL; model = model->next) {
        if (strcmp(model->name, name) == 0) {
            return model;
        }
    }
    return NULL;
}

bool fsdpi_state_has_files(const fsdpi_state *state, const char *stem)
{
    char name[FSDPI_STEM_BYTES + 64];

    (void)snprintf(name, sizeof name, "%s.safetensors", stem);
    if (fsdpi_checksums_find(&state->sums, name) != NULL) {
        return true;
    }
    (void)snprintf(name, sizeof name, "%s.safetensors" FSDPI_INDEX_SUFFIX, stem);
    return fsdpi_checksums_find(&state->sums, name) != NULL;
}

const char *fsdpi_state_names(const fsdpi_state *state, char *text, size_t size)
{
    size_t used = 0;

    (void)snprintf(text, size, "none");
    for (const fsdpi_model_state *model = state->models; model != NULL && used < size; model = model->next) {
        if (model->name[0] != '\0') {
            used += (size_t)snprintf(text + used, size - used, "%s'%s'", used > 0 ? ", " : "", model->name);
        }
    }
    return text;
}

/* ---- its own checksum ---------------------------------------------------------------------------------------------- */

enum { SUM_DIGITS = 16 };
#define NO_SUM "0000000000000000"

/* The digits of "sum", the first member of that name; NULL where it has not as many. */
static char *find_sum(char *text)
{
    char *at = strstr(text, "\"sum\"");

    at = at != NULL ? strchr(at, ':') : NULL;
    at = at != NULL ? strchr(at, '"') : NULL;
    return at != NULL && strcspn(at + 1, "\"") == SUM_DIGITS ? at + 1 : NULL;
}

/* Of the text with zeros in place of these digits. */
static void sum_up(char *text, size_t bytes, char *digits, char sum[SUM_DIGITS + 1])
{
    memcpy(digits, NO_SUM, SUM_DIGITS);
    (void)snprintf(sum, SUM_DIGITS + 1, "%016" PRIx64, fsdpi_checksum(text, bytes));
}

static void put_sum_in(char *text, size_t bytes)
{
    char  sum[SUM_DIGITS + 1];
    char *digits = find_sum(text);

    sum_up(text, bytes, digits, sum);
    memcpy(digits, sum, SUM_DIGITS);
}

static fsdp_status check_sum(const char *path, char *text, size_t bytes, fsdpi_problem *problem)
{
    char  written[SUM_DIGITS], sum[SUM_DIGITS + 1];
    char *digits = find_sum(text);

    if (digits == NULL) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: has no sum of its own; it is damaged", path);
    }
    memcpy(written, digits, SUM_DIGITS);
    sum_up(text, bytes, digits, sum);
    return memcmp(written, sum, SUM_DIGITS) == 0
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                   "%s: its sum is %s, not %.16s as it says; the file has been changed", path, sum,
                                   written);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_world(fsdpi_json_writer *w, const fsdpi_state *state, const fsdpi_model_state *unnamed)
{
    fsdpi_json_begin_object(w, "world", true);
    fsdpi_json_put_u64(w, "ranks", state->program.ranks);
    fsdpi_json_put_string(w, "strategy", unnamed->strategy);
    fsdpi_json_end_object(w);
}

static void put_optimizer(fsdpi_json_writer *w, const fsdpi_model_state *model)
{
    if (!model->has_optimizer) {
        fsdpi_json_put_null(w, "optimizer");
        return;
    }
    fsdpi_json_begin_object(w, "optimizer", true);
    fsdpi_json_put_string(w, "kind", model->optimizer);
    fsdpi_json_put_u64(w, "steps", model->optimizer_steps);
    fsdpi_json_end_object(w);
}

static void put_group_optimizers(fsdpi_json_writer *w, const fsdpi_model_state *model)
{
    if (model->n_group_optimizers == 0) {
        return;
    }
    fsdpi_json_begin_array(w, "group_optimizers", false);
    for (size_t i = 0; i < model->n_group_optimizers; i++) {
        const fsdpi_group_optimizer *one = &model->group_optimizers[i];

        fsdpi_json_begin_object(w, NULL, true);
        fsdpi_json_put_string(w, "group", one->group);
        fsdpi_json_put_string(w, "kind", one->kind);
        fsdpi_json_put_u64(w, "steps", one->steps);
        fsdpi_json_end_object(w);
    }
    fsdpi_json_end_array(w);
}

static void put_scaler(fsdpi_json_writer *w, const fsdpi_model_state *model)
{
    if (!model->has_scaler) {
        fsdpi_json_put_null(w, "loss_scaler");
        return;
    }
    fsdpi_json_begin_object(w, "loss_scaler", true);
    fsdpi_json_put_double(w, "scale", model->scaler.scale);
    fsdpi_json_put_u64(w, "clean_steps", model->scaler.clean_steps);
    fsdpi_json_put_u64(w, "skipped_steps", model->scaler.skipped_steps);
    fsdpi_json_end_object(w);
}

/* Optimizers and loss scaler of a model, into the object that is open. */
static void put_model(fsdpi_json_writer *w, const fsdpi_model_state *model)
{
    put_optimizer(w, model);
    put_group_optimizers(w, model);
    put_scaler(w, model);
}

static void put_named_models(fsdpi_json_writer *w, const fsdpi_model_state *first)
{
    if (first == NULL) {
        return;
    }
    fsdpi_json_begin_array(w, "models", false);
    for (const fsdpi_model_state *model = first; model != NULL; model = model->next) {
        fsdpi_json_begin_object(w, NULL, false);
        fsdpi_json_put_string(w, "name", model->name);
        fsdpi_json_put_string(w, "strategy", model->strategy);
        put_model(w, model);
        fsdpi_json_end_object(w);
    }
    fsdpi_json_end_array(w);
}

/* The least that can say it. */
static unsigned version_of(const fsdpi_state *state)
{
    for (size_t f = 0; f < state->sums.n_files; f++) {
        if (state->sums.files[f].adds_up) {
            return 3;
        }
    }
    return 2;
}

fsdp_status fsdpi_state_write(const fsdpi_state *state, char **text, size_t *bytes, fsdpi_problem *problem)
{
    static const fsdpi_model_state none    = {.has_optimizer = false};
    const fsdpi_model_state       *unnamed = fsdpi_state_model(state, "");
    fsdpi_json_writer              w;

    fsdpi_json_writer_init(&w, 2);
    fsdpi_json_begin_object(&w, NULL, false);
    fsdpi_json_put_string(&w, "format", FORMAT);
    fsdpi_json_put_u64(&w, "version", version_of(state));
    fsdpi_json_put_string(&w, "sum", NO_SUM);
    fsdpi_json_put_u64(&w, "step", state->program.step);
    fsdpi_json_put_u64(&w, "epoch", state->program.epoch);
    fsdpi_json_put_u64(&w, "sample", state->program.sample);
    fsdpi_json_put_u64(&w, "seed", state->program.seed);
    fsdpi_json_put_string(&w, "text", state->program.text);
    put_world(&w, state, unnamed != NULL ? unnamed : &none);
    put_model(&w, unnamed != NULL ? unnamed : &none);
    put_named_models(&w, unnamed != NULL ? unnamed->next : state->models);
    fsdpi_checksums_put(&w, &state->sums);
    fsdpi_json_end_object(&w);
    FSDP_TRY(fsdpi_json_writer_end(&w, text, bytes, problem));
    if (*bytes > FSDPI_STATE_MOST) {
        free(*text);
        *text = NULL;
        return fsdpi_problem_set(problem, FSDP_ERR_ARG,
                                 FSDPI_STATE_FILE
                                 ": %zu bytes for all checksums; at most %zu are read again: use fewer "
                                 "or larger tensors, or fewer ranks",
                                 *bytes, FSDPI_STATE_MOST);
    }
    put_sum_in(*text, *bytes);
    return FSDP_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static fsdp_status get_u64(const fsdpi_json_value *object, const char *name, uint64_t *result, fsdpi_problem *problem)
{
    const fsdpi_json_value *member;

    FSDP_TRY(fsdpi_json_require(object, name, FSDPI_JSON_UNSIGNED, &member, problem));
    return fsdpi_json_get_u64(member, result, problem);
}

static fsdp_status get_size(const fsdpi_json_value *object, const char *name, size_t *result, fsdpi_problem *problem)
{
    uint64_t value;

    FSDP_TRY(get_u64(object, name, &value, problem));
    *result = (size_t)value;
    return FSDP_OK;
}

static fsdp_status get_text(const fsdpi_json_value *object, const char *name, char *text, size_t room,
                            fsdpi_problem *problem)
{
    const fsdpi_json_value *member;
    const char             *found;

    FSDP_TRY(fsdpi_json_require(object, name, FSDPI_JSON_STRING, &member, problem));
    FSDP_TRY(fsdpi_json_get_string(member, &found, problem));
    if (strlen(found) >= room) {
        return fsdpi_json_refuse_value(member, problem, "has %zu bytes; at most %zu are possible", strlen(found),
                                       room - 1);
    }
    memcpy(text, found, strlen(found) + 1);
    return FSDP_OK;
}

/* The format's name first, then its version: of another one nothing else is looked at. */
static fsdp_status check_version(const fsdpi_json_value *root, fsdpi_problem *problem)
{
    char     format[64];
    uint64_t version;

    FSDP_TRY(get_text(root, "format", format, sizeof format, problem));
    if (strcmp(format, FORMAT) != 0) {
        return fsdpi_json_refuse_value(fsdpi_json_member(root, "format"), problem, "is '%s', not '" FORMAT "'", format);
    }
    FSDP_TRY(get_u64(root, "version", &version, problem));
    if (version == 0 || version > FSDPI_STATE_VERSION) {
        return fsdpi_json_refuse_value(fsdpi_json_member(root, "version"), problem,
                                       "is %" PRIu64 ", and libfsdp %s reads versions 1 to %u; use a newer libfsdp",
                                       version, fsdp_version(), FSDPI_STATE_VERSION);
    }
    return FSDP_OK;
}

static fsdp_status get_program(const fsdpi_json_value *root, fsdp_checkpoint_state *program, fsdpi_problem *problem)
{
    FSDP_TRY(get_u64(root, "step", &program->step, problem));
    FSDP_TRY(get_u64(root, "epoch", &program->epoch, problem));
    FSDP_TRY(get_u64(root, "sample", &program->sample, problem));
    FSDP_TRY(get_u64(root, "seed", &program->seed, problem));
    return get_text(root, "text", program->text, sizeof program->text, problem);
}

/* A member that is an object, or null: then `*object` is NULL. */
static fsdp_status get_object(const fsdpi_json_value *root, const char *name, const fsdpi_json_value **object,
                              fsdpi_problem *problem)
{
    const fsdpi_json_value *member = fsdpi_json_member(root, name);

    *object = NULL;
    if (member != NULL && fsdpi_json_kind_of(member) == FSDPI_JSON_NULL) {
        return FSDP_OK;
    }
    return fsdpi_json_require(root, name, FSDPI_JSON_OBJECT, object, problem);
}

static fsdp_status get_optimizer(const fsdpi_json_value *root, fsdpi_model_state *model, fsdpi_problem *problem)
{
    const fsdpi_json_value *object;

    FSDP_TRY(get_object(root, "optimizer", &object, problem));
    if (object == NULL) {
        return FSDP_OK;
    }
    model->has_optimizer = true;
    FSDP_TRY(get_text(object, "kind", model->optimizer, sizeof model->optimizer, problem));
    return get_u64(object, "steps", &model->optimizer_steps, problem);
}

static fsdp_status get_group_optimizers(const fsdpi_json_value *root, fsdpi_model_state *model, fsdpi_problem *problem)
{
    const fsdpi_json_value *list;

    if (fsdpi_json_member(root, "group_optimizers") == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_json_require(root, "group_optimizers", FSDPI_JSON_ARRAY, &list, problem));
    if (fsdpi_json_count(list) > FSDPI_MOST_GROUP_OPTIMIZERS) {
        return fsdpi_json_refuse_value(list, problem, "has %zu members; at most %d are possible",
                                       fsdpi_json_count(list), FSDPI_MOST_GROUP_OPTIMIZERS);
    }
    for (size_t i = 0; i < fsdpi_json_count(list); i++) {
        const fsdpi_json_value *object = fsdpi_json_item(list, i);
        fsdpi_group_optimizer  *one    = &model->group_optimizers[model->n_group_optimizers++];

        if (fsdpi_json_kind_of(object) != FSDPI_JSON_OBJECT) {
            return fsdpi_json_refuse_value(object, problem, "is no object");
        }
        FSDP_TRY(get_text(object, "group", one->group, sizeof one->group, problem));
        FSDP_TRY(get_text(object, "kind", one->kind, sizeof one->kind, problem));
        FSDP_TRY(get_u64(object, "steps", &one->steps, problem));
    }
    return FSDP_OK;
}

static fsdp_status get_scaler(const fsdpi_json_value *root, fsdpi_model_state *model, fsdpi_problem *problem)
{
    const fsdpi_json_value *object, *scale;

    FSDP_TRY(get_object(root, "loss_scaler", &object, problem));
    if (object == NULL) {
        return FSDP_OK;
    }
    model->has_scaler = true;
    FSDP_TRY(fsdpi_json_require(object, "scale", FSDPI_JSON_DOUBLE, &scale, problem));
    FSDP_TRY(fsdpi_json_get_double(scale, &model->scaler.scale, problem));
    FSDP_TRY(get_size(object, "clean_steps", &model->scaler.clean_steps, problem));
    return get_size(object, "skipped_steps", &model->scaler.skipped_steps, problem);
}

/* Optimizers and loss scaler of a model, out of the object that has them. */
static fsdp_status get_model(const fsdpi_json_value *object, fsdpi_model_state *model, fsdpi_problem *problem)
{
    FSDP_TRY(get_optimizer(object, model, problem));
    FSDP_TRY(get_group_optimizers(object, model, problem));
    return get_scaler(object, model, problem);
}

/* The next of the list, behind `before`; NULL is the first. NULL: there is no memory. */
static fsdpi_model_state *add_model(fsdpi_state *state, fsdpi_model_state *before, fsdpi_problem *problem)
{
    fsdpi_model_state *added = calloc(1, sizeof *added);

    if (added == NULL) {
        (void)fsdpi_problem_memory(problem, FSDPI_STATE_FILE, sizeof *added);
        return NULL;
    }
    *(before != NULL ? &before->next : &state->models) = added;
    return added;
}

/* Files are named after it. */
static fsdp_status get_model_name(const fsdpi_json_value *object, const fsdpi_state *state, char *name,
                                  fsdpi_problem *problem)
{
    char found[FSDP_CHECKPOINT_NAME_BYTES];

    FSDP_TRY(get_text(object, "name", found, sizeof found, problem));
    const char *wrong = fsdpi_model_name_wrong(found);
    if (wrong == NULL && fsdpi_state_model(state, found) != NULL) {
        wrong = "comes twice";
    }
    if (wrong != NULL) {
        return fsdpi_json_refuse_value(fsdpi_json_member(object, "name"), problem, "is '%s': it %s", found, wrong);
    }
    memcpy(name, found, sizeof found);
    return FSDP_OK;
}

static fsdp_status get_named_models(const fsdpi_json_value *root, fsdpi_state *state, fsdpi_problem *problem)
{
    fsdpi_model_state      *model = state->models;
    const fsdpi_json_value *list;

    if (fsdpi_json_member(root, "models") == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_json_require(root, "models", FSDPI_JSON_ARRAY, &list, problem));
    if (fsdpi_json_count(list) > FSDPI_MOST_NAMED_MODELS) {
        return fsdpi_json_refuse_value(list, problem, "has %zu members; at most %d are possible",
                                       fsdpi_json_count(list), FSDPI_MOST_NAMED_MODELS);
    }
    for (size_t i = 0; i < fsdpi_json_count(list); i++) {
        const fsdpi_json_value *object                           = fsdpi_json_item(list, i);
        char                    name[FSDP_CHECKPOINT_NAME_BYTES] = "";

        if (fsdpi_json_kind_of(object) != FSDPI_JSON_OBJECT) {
            return fsdpi_json_refuse_value(object, problem, "is no object");
        }
        FSDP_TRY(get_model_name(object, state, name, problem));
        model = add_model(state, model, problem);
        if (model == NULL) {
            return FSDP_ERR_MEMORY;
        }
        memcpy(model->name, name, sizeof name);
        FSDP_TRY(get_text(object, "strategy", model->strategy, sizeof model->strategy, problem));
        FSDP_TRY(get_model(object, model, problem));
    }
    return FSDP_OK;
}

static fsdp_status get_all(const fsdpi_json_value *root, fsdpi_state *state, fsdpi_problem *problem)
{
    const fsdpi_json_value *world;

    FSDP_TRY(get_program(root, &state->program, problem));
    FSDP_TRY(fsdpi_json_require(root, "world", FSDPI_JSON_OBJECT, &world, problem));
    FSDP_TRY(get_u64(world, "ranks", &state->program.ranks, problem));
    fsdpi_model_state *unnamed = add_model(state, NULL, problem);
    if (unnamed == NULL) {
        return FSDP_ERR_MEMORY;
    }
    FSDP_TRY(get_text(world, "strategy", unnamed->strategy, sizeof unnamed->strategy, problem));
    FSDP_TRY(get_model(root, unnamed, problem));
    FSDP_TRY(get_named_models(root, state, problem));
    return fsdpi_checksums_get(root, &state->sums, problem);
}

void fsdpi_state_free(fsdpi_state *state)
{
    while (state->models != NULL) {
        fsdpi_model_state *model = state->models;

        state->models = model->next;
        free(model);
    }
    fsdpi_checksums_free(&state->sums);
    *state = (fsdpi_state){.models = NULL};
}

fsdp_status fsdpi_state_parse(const char *path, char *text, size_t bytes, fsdpi_state *state, fsdpi_problem *problem)
{
    fsdpi_json_value *root;

    *state = (fsdpi_state){.models = NULL};
    FSDP_TRY(fsdpi_json_parse(path, text, bytes, &root, problem));
    fsdp_status status = check_version(root, problem); /* first: a newer one may have its sum elsewhere */
    if (status == FSDP_OK) {
        status = check_sum(path, text, bytes, problem);
    }
    if (status == FSDP_OK) {
        status = get_all(root, state, problem);
    }
    fsdpi_json_free(root);
    if (status != FSDP_OK) {
        fsdpi_state_free(state);
    }
    return status;
}

/* They are beside it. */
static fsdp_status read_chunks(const char *path, fsdpi_state *state, fsdpi_problem *problem)
{
    const char *slash  = strrchr(path, '/');
    char       *beside = fsdpi_text("%.*s" FSDPI_CHECKSUMS_FILE, slash != NULL ? (int)(slash - path + 1) : 0, path);

    fsdp_status status = beside != NULL ? fsdpi_checksums_file_read(beside, &state->sums, problem)
                                        : fsdpi_problem_memory(problem, path, strlen(path));
    free(beside);
    if (status != FSDP_OK) {
        fsdpi_state_free(state);
    }
    return status;
}

fsdp_status fsdpi_state_read(const char *path, fsdpi_state *state, fsdpi_problem *problem)
{
    char  *text;
    size_t bytes;

    *state = (fsdpi_state){.models = NULL};
    FSDP_TRY(fsdpi_file_text(path, FSDPI_STATE_MOST, &text, &bytes, problem));
    fsdp_status status = fsdpi_state_parse(path, text, bytes, state, problem);
    free(text);
    if (status == FSDP_OK) {
        status = read_chunks(path, state, problem);
    }
    return status;
}
