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
#include "shard/checkpoint/format/text.h"

#define FORMAT "libfsdp checkpoint"

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

static void put_world(fsdpi_json_writer *w, const fsdpi_state *state)
{
    fsdpi_json_begin_object(w, "world", true);
    fsdpi_json_put_u64(w, "ranks", state->program.ranks);
    fsdpi_json_put_string(w, "strategy", state->strategy);
    fsdpi_json_end_object(w);
}

static void put_optimizer(fsdpi_json_writer *w, const fsdpi_state *state)
{
    if (!state->has_optimizer) {
        fsdpi_json_put_null(w, "optimizer");
        return;
    }
    fsdpi_json_begin_object(w, "optimizer", true);
    fsdpi_json_put_string(w, "kind", state->optimizer);
    fsdpi_json_put_u64(w, "steps", state->optimizer_steps);
    fsdpi_json_end_object(w);
}

static void put_group_optimizers(fsdpi_json_writer *w, const fsdpi_state *state)
{
    if (state->n_group_optimizers == 0) {
        return;
    }
    fsdpi_json_begin_array(w, "group_optimizers", false);
    for (size_t i = 0; i < state->n_group_optimizers; i++) {
        const fsdpi_group_optimizer *one = &state->group_optimizers[i];

        fsdpi_json_begin_object(w, NULL, true);
        fsdpi_json_put_string(w, "group", one->group);
        fsdpi_json_put_string(w, "kind", one->kind);
        fsdpi_json_put_u64(w, "steps", one->steps);
        fsdpi_json_end_object(w);
    }
    fsdpi_json_end_array(w);
}

static void put_scaler(fsdpi_json_writer *w, const fsdpi_state *state)
{
    if (!state->has_scaler) {
        fsdpi_json_put_null(w, "loss_scaler");
        return;
    }
    fsdpi_json_begin_object(w, "loss_scaler", true);
    fsdpi_json_put_double(w, "scale", state->scaler.scale);
    fsdpi_json_put_u64(w, "clean_steps", state->scaler.clean_steps);
    fsdpi_json_put_u64(w, "skipped_steps", state->scaler.skipped_steps);
    fsdpi_json_end_object(w);
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
    fsdpi_json_writer w;

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
    put_world(&w, state);
    put_optimizer(&w, state);
    put_group_optimizers(&w, state);
    put_scaler(&w, state);
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

static fsdp_status get_optimizer(const fsdpi_json_value *root, fsdpi_state *state, fsdpi_problem *problem)
{
    const fsdpi_json_value *object;

    FSDP_TRY(get_object(root, "optimizer", &object, problem));
    if (object == NULL) {
        return FSDP_OK;
    }
    state->has_optimizer = true;
    FSDP_TRY(get_text(object, "kind", state->optimizer, sizeof state->optimizer, problem));
    return get_u64(object, "steps", &state->optimizer_steps, problem);
}

static fsdp_status get_group_optimizers(const fsdpi_json_value *root, fsdpi_state *state, fsdpi_problem *problem)
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
        fsdpi_group_optimizer  *one    = &state->group_optimizers[state->n_group_optimizers++];

        if (fsdpi_json_kind_of(object) != FSDPI_JSON_OBJECT) {
            return fsdpi_json_refuse_value(object, problem, "is no object");
        }
        FSDP_TRY(get_text(object, "group", one->group, sizeof one->group, problem));
        FSDP_TRY(get_text(object, "kind", one->kind, sizeof one->kind, problem));
        FSDP_TRY(get_u64(object, "steps", &one->steps, problem));
    }
    return FSDP_OK;
}

static fsdp_status get_scaler(const fsdpi_json_value *root, fsdpi_state *state, fsdpi_problem *problem)
{
    const fsdpi_json_value *object, *scale;

    FSDP_TRY(get_object(root, "loss_scaler", &object, problem));
    if (object == NULL) {
        return FSDP_OK;
    }
    state->has_scaler = true;
    FSDP_TRY(fsdpi_json_require(object, "scale", FSDPI_JSON_DOUBLE, &scale, problem));
    FSDP_TRY(fsdpi_json_get_double(scale, &state->scaler.scale, problem));
    FSDP_TRY(get_size(object, "clean_steps", &state->scaler.clean_steps, problem));
    return get_size(object, "skipped_steps", &state->scaler.skipped_steps, problem);
}

static fsdp_status get_all(const fsdpi_json_value *root, fsdpi_state *state, fsdpi_problem *problem)
{
    const fsdpi_json_value *world;

    FSDP_TRY(get_program(root, &state->program, problem));
    FSDP_TRY(fsdpi_json_require(root, "world", FSDPI_JSON_OBJECT, &world, problem));
    FSDP_TRY(get_u64(world, "ranks", &state->program.ranks, problem));
    FSDP_TRY(get_text(world, "strategy", state->strategy, sizeof state->strategy, problem));
    FSDP_TRY(get_optimizer(root, state, problem));
    FSDP_TRY(get_group_optimizers(root, state, problem));
    FSDP_TRY(get_scaler(root, state, problem));
    return fsdpi_checksums_get(root, &state->sums, problem);
}

fsdp_status fsdpi_state_parse(const char *path, char *text, size_t bytes, fsdpi_state *state, fsdpi_problem *problem)
{
    fsdpi_json_value *root;

    memset(state, 0, sizeof *state);
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
        memset(state, 0, sizeof *state);
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
        fsdpi_checksums_free(&state->sums);
        memset(state, 0, sizeof *state);
    }
    return status;
}

fsdp_status fsdpi_state_read(const char *path, fsdpi_state *state, fsdpi_problem *problem)
{
    char  *text;
    size_t bytes;

    memset(state, 0, sizeof *state);
    FSDP_TRY(fsdpi_file_text(path, FSDPI_STATE_MOST, &text, &bytes, problem));
    fsdp_status status = fsdpi_state_parse(path, text, bytes, state, problem);
    free(text);
    if (status == FSDP_OK) {
        status = read_chunks(path, state, problem);
    }
    return status;
}
