#include "gpt_schedule.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

enum { MOST_BYTES = 1 << 24, MOST_STAGES = 1 << 20, INTERLEAVED_STAGES = 2 };

static const char *const names[] = {"gpipe", "1f1b", "interleaved", "zb-h1", NULL};

static const char *find_name(const char *text)
{
    size_t i;

    for (i = 0; names[i] && strcmp(names[i], text) != 0; i++) {
    }
    return names[i];
}

static void read_file(const char *name, char **text, int64_t *bytes, char *message)
{
    FILE *file = fopen(name, "rb");

    *text = calloc(1, (size_t)MOST_BYTES + 1);
    errno = file ? 0 : errno;
    if (file && *text) {
        *bytes = (int64_t)fread(*text, 1, MOST_BYTES, file);
    }
    if (!file || !*text || ferror(file) || *bytes == MOST_BYTES) {
        (void)snprintf(
            message, EXAMPLE_MESSAGE_BYTES,
            "--schedule is '%.60s': %s; use gpipe, 1f1b, interleaved or zb-h1, or a file that rank 0 can read", name,
            *bytes == MOST_BYTES ? "16 MiB or more" : strerror(errno));
    }
    if (file) {
        (void)fclose(file);
    }
}

static fsdp_status share_file(fsdp_context *ctx, const char *name, char **text)
{
    char        message[EXAMPLE_MESSAGE_BYTES] = "";
    int64_t     bytes                          = 0;
    fsdp_status status;

    if (fsdp_rank(ctx) == 0) {
        read_file(name, text, &bytes, message);
    }
    EXAMPLE_TRY(example_agree(ctx, message));
    EXAMPLE_TRY(fsdp_broadcast(ctx, &bytes, 1, FSDP_I64, 0));
    if (fsdp_rank(ctx) != 0) {
        *text = calloc(1, (size_t)bytes + 1);
    }
    EXAMPLE_TRY(example_agree(ctx, *text ? "" : "no memory for the schedule; use a shorter one"));
    status = fsdp_broadcast(ctx, *text, (size_t)bytes, FSDP_U8, 0);
    return status;
}

/* "12F3": what it does, and in which stage; 0 for another action, or none. The library says what is wrong with those. */
static char action_of(const char *token, long *stage)
{
    char *end;

    *stage = isdigit((unsigned char)*token) ? strtol(token, &end, 10) : -1;
    return *stage >= 0 && *stage < MOST_STAGES && *end && isdigit((unsigned char)end[1]) ? *end : '\0';
}

static void look_through(gpt_schedule *s)
{
    static const char between[] = ", \t\r\n";
    const char       *token     = s->text;

    for (token += strspn(token, between); *token; token += strspn(token, between)) {
        long       stage;
        const char action = action_of(token, &stage);

        s->stages = action == 'F' && stage >= s->stages ? (int)stage + 1 : s->stages;
        s->splits = s->splits || action == 'I' || action == 'W';
        s->joins  = s->joins || action == 'B';
        token += strcspn(token, between);
    }
}

static void look_up(const gpt_options *o, gpt_schedule *s)
{
    s->splits          = strcmp(s->name, "zb-h1") == 0;
    s->joins           = !s->splits;
    s->stages_per_rank = 1;
    if (strcmp(s->name, "interleaved") == 0) {
        s->stages_per_rank = o->stages_per_rank ? (int)o->stages_per_rank : INTERLEAVED_STAGES;
    }
    s->stages = s->stages_per_rank * (int)o->pp;
}

static fsdp_status check_layers(const gpt_options *o, const gpt_schedule *s)
{
    const size_t layers = o->config.layers, stages = (size_t)s->stages;

    if (stages == 0) {
        return example_fail("--schedule '%.60s' has no forward pass, such as 0F0; fsdp-plan pipeline --file shows what "
                            "is wrong with it",
                            o->schedule);
    }
    if (stages > layers) {
        return example_fail("--schedule %.60s has %zu stages, more than --layers %zu; use a smaller --pp or "
                            "--stages-per-rank, or more layers",
                            o->schedule, stages, layers);
    }
    if (layers % stages != 0) {
        return example_fail(
            "--layers is %zu, which the %zu stages of --schedule %.60s do not divide; use a multiple of "
            "them",
            layers, stages, o->schedule);
    }
    return FSDP_OK;
}

fsdp_status gpt_schedule_open(fsdp_context *ctx, const gpt_options *options, gpt_schedule *schedule)
{
    *schedule = (gpt_schedule){.name = find_name(options->schedule)};
    if (schedule->name) {
        look_up(options, schedule);
    } else {
        EXAMPLE_TRY(share_file(ctx, options->schedule, &schedule->text));
        look_through(schedule);
    }
    return check_layers(options, schedule);
}

void gpt_schedule_release(gpt_schedule *schedule)
{
    free(schedule->text);
    *schedule = (gpt_schedule){0};
}
