#include "tools/records/view.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static const char *const DTYPES[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "u8"};
static const char *const OPS[]    = {"sum", "avg", "min", "max", "prod"};

#define N_OF(array) ((int)(sizeof(array) / sizeof *(array)))

const record_entry *view_entry(const record_rank *rank, uint64_t sequence)
{
    size_t low = 0, high = rank->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (rank->entries[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < rank->n && rank->entries[low].sequence == sequence ? &rank->entries[low] : NULL;
}

static bool is_pending(const record_entry *entry)
{
    enum { MPI_FAILED = 5, TIMED_OUT = 6 }; /* FSDP_ERR_MPI, FSDP_ERR_TIMEOUT */

    return entry->state < FSDPI_RECORDED_DONE ||
           (entry->state == FSDPI_RECORDED_FAILED && (entry->status == MPI_FAILED || entry->status == TIMED_OUT));
}

const record_entry *view_first_pending(const record_rank *rank)
{
    for (size_t i = 0; i < rank->n; i++) {
        if (is_pending(&rank->entries[i])) {
            return &rank->entries[i];
        }
    }
    return NULL;
}

bool view_has_ended(const record_rank *rank, uint64_t sequence)
{
    const record_entry *entry = view_entry(rank, sequence);

    return sequence < rank->section.issued && (entry == NULL || !is_pending(entry));
}

/* ---- time ------------------------------------------------------------------------------------------------------------- */

/* NANOSECONDS of a tick: two moments, as far apart as they are, tell. */
static double tick_length(const fsdpi_recorded_header *head)
{
    const double ticks = (double)head->written.ticks - (double)head->opened.ticks;
    const double real  = (double)head->written.monotonic - (double)head->opened.monotonic;

    return head->clock == FSDPI_CLOCK_MONOTONIC || ticks <= 0 || real <= 0 ? 1.0 : real / ticks;
}

double view_seconds(const record_rank *rank, uint64_t from, uint64_t to)
{
    return 1e-9 * tick_length(&rank->head) * ((double)to - (double)from);
}

double view_seconds_since(const record_rank *rank, uint64_t ticks)
{
    const double seconds = view_seconds(rank, ticks, rank->head.written.ticks);

    return seconds > 0 ? seconds : 0;
}

double view_age(const record_rank *rank)
{
    return view_seconds_since(rank, rank->head.opened.ticks);
}

double view_waited(const record_rank *rank)
{
    const double before = 1e-9 * (double)rank->section.waited;

    return before + (view_doing(rank) == FSDPI_DOING_WAITING ? view_seconds_since(rank, rank->section.since) : 0);
}

void view_clock_time(const record_rank *rank, uint64_t ticks, char text[VIEW_BYTES])
{
    const double real = 1e-9 * (double)rank->head.written.real - view_seconds_since(rank, ticks);
    const time_t when = real > 0 && real < 1e11 ? (time_t)real : 0;
    struct tm    local;

    if (localtime_r(&when, &local) == NULL || strftime(text, VIEW_BYTES, "%H:%M:%S", &local) == 0) {
        (void)snprintf(text, VIEW_BYTES, "an unknown time");
    }
}

void view_duration(double seconds, char text[VIEW_BYTES])
{
    const long long whole = seconds < 9e15 ? (long long)(seconds + 0.5) : 0;

    if (seconds < 0.9995) {
        (void)snprintf(text, VIEW_BYTES, "%.0f ms", 1e3 * seconds);
    } else if (seconds < 9.95) {
        (void)snprintf(text, VIEW_BYTES, "%.1f s", seconds);
    } else if (whole < 120) {
        (void)snprintf(text, VIEW_BYTES, "%lld s", whole);
    } else if (whole < 7200) {
        (void)snprintf(text, VIEW_BYTES, "%lld min %lld s", whole / 60, whole % 60);
    } else {
        (void)snprintf(text, VIEW_BYTES, "%lld h %lld min", whole / 3600, whole / 60 % 60);
    }
}

/* ---- words -------------------------------------------------------------------------------------------------------------- */

/* What the program was about when it called the function that the operation is a step of; NULL: the call tells. */
static const char *purpose_of(const char *call)
{
    static const struct {
        const char *call, *purpose;
    } KNOWN[] = {{"fsdp_unit_begin_forward", "for the forward pass"},
                 {"fsdp_unit_begin_backward", "for the backward pass"},
                 {"fsdp_unit_end_backward", "behind the backward pass"},
                 {"fsdp_optimizer_step", "for the optimizer's step"},
                 {"fsdp_clip_grad_norm", "for the gradient's norm"}};

    for (int i = 0; i < N_OF(KNOWN); i++) {
        if (strcmp(call, KNOWN[i].call) == 0) {
            return KNOWN[i].purpose;
        }
    }
    return NULL;
}

/* Whether the program called the collective itself: fsdp_allgather(), fsdp_iallgather(). */
static bool is_plain(const char *call, const char *collective)
{
    const char *rest = strncmp(call, "fsdp_", 5) == 0 ? call + 5 : call;

    return strncmp(rest, collective, strlen(collective)) == 0;
}

static void describe_elements(const record_entry *entry, char text[VIEW_BYTES])
{
    const char *dtype  = entry->dtype >= 0 && entry->dtype < N_OF(DTYPES) ? DTYPES[entry->dtype] : "";
    char        op[16] = "", root[24] = "";

    text[0] = '\0';
    if (dtype[0] == '\0') {
        return;
    }
    if (entry->op >= 0 && entry->op < N_OF(OPS)) {
        (void)snprintf(op, sizeof op, ", %s", OPS[entry->op]);
    }
    if (entry->root >= 0) {
        (void)snprintf(root, sizeof root, ", root %d", entry->root);
    }
    (void)snprintf(text, VIEW_BYTES, "%" PRIu64 " %s elements%s%s", entry->count, dtype, op, root);
}

void view_operation(const record_rank *rank, const record_entry *entry, bool full, char text[VIEW_BYTES])
{
    const char *collective = records_name(rank, entry->collective), *call = records_name(rank, entry->call);
    const char *purpose  = purpose_of(call);
    const bool  labelled = entry->label[0] != '\0';
    char        what[VIEW_BYTES], where[64] = "";

    if (strcmp(collective, "agreement") == 0) { /* its label says what on */
        (void)snprintf(text, VIEW_BYTES, "agreement in %.60s()%s%s", call, labelled ? ": " : "", entry->label);
        return;
    }
    describe_elements(entry, what);
    if (purpose != NULL) {
        (void)snprintf(where, sizeof where, " %s", purpose);
    } else if (!is_plain(call, collective) && call[0] != '\0') {
        (void)snprintf(where, sizeof where, " in %s()", call);
    }
    (void)snprintf(text, VIEW_BYTES, "%s%s%.47s%s%s%.60s", collective[0] != '\0' ? collective : "an unknown operation",
                   labelled || what[0] != '\0' ? " of " : "", labelled ? entry->label : what, where,
                   labelled && full && what[0] != '\0' ? ", " : "", labelled && full ? what : "");
}

void view_rank(const record_rank *rank, char text[VIEW_BYTES])
{
    (void)snprintf(text, VIEW_BYTES, "rank %d%s%s", (int)rank->section.shown_rank,
                   rank->head.host[0] != '\0' ? " on " : "", rank->head.host);
}

const char *view_doing_text(const record_rank *rank)
{
    static const char *const TEXTS[] = {"its own code", "waits", "has finalized"};

    return TEXTS[view_doing(rank)];
}
