#include "lib/sync/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

enum { NAME_BYTES = 512 };

static const char *const ROWS[] = {"passes", "operations", "operations within the group", "operations between groups"};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static _Atomic int n_opened;

static void file_name(const fsdpi_core *core, int number, char name[PATH_MAX])
{
    if (number == 0) {
        (void)snprintf(name, PATH_MAX, "%s.%d.json", core->config.trace, core->rank);
    } else {
        (void)snprintf(name, PATH_MAX, "%s.%d.%d.json", core->config.trace, core->rank, number);
    }
}

/* Once for each file. What would come behind a gap is left out. */
static void check_written(const fsdpi_trace *trace, bool written)
{
    const int why = errno;

    if (!written && atomic_exchange(trace->whole, false)) {
        fsdpi_log(trace->core->ctx, FSDP_LOG_WARN,
                  "FSDP_TRACE: this rank's file cannot be written any more and is cut off: %s; make room, or trace "
                  "into another "
                  "folder",
                  strerror(why));
    }
}

static bool is_written(const fsdpi_trace *trace)
{
    return trace->file != NULL && atomic_load_explicit(trace->whole, memory_order_relaxed);
}

static bool write_head(FILE *file, int rank)
{
    bool written =
        fprintf(file, "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}", rank,
                rank) >= 0;
    for (size_t row = 0; row < sizeof ROWS / sizeof ROWS[0]; row++) {
        written =
            written &&
            fprintf(file,
                    ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%zu,\"args\":{\"name\":\"%s\"}}",
                    rank, row, ROWS[row]) >= 0;
    }
    return written;
}

fsdp_status fsdpi_trace_open(fsdpi_trace *trace, const fsdpi_core *core)
{
    char name[PATH_MAX];

    if (core->config.trace == NULL || core->config.trace[0] == '\0') {
        return FSDP_OK;
    }
    file_name(core, atomic_fetch_add(&n_opened, 1), name);
    trace->file = fopen(name, "w");
    if (trace->file == NULL) {
        return fsdpi_fail_together(core->ctx, FSDP_ERR_ARG,
                                   "FSDP_TRACE: '%.200s.*.json' cannot be written: %s; name a folder that exists",
                                   core->config.trace, strerror(errno));
    }
    trace->core  = core;
    trace->whole = &trace->is_whole;
    atomic_store(&trace->is_whole, true);
    trace->rank = core->rank;
    trace->row  = FSDPI_ROW_ALL;
    check_written(trace, write_head(trace->file, trace->rank));
    return FSDP_OK;
}

void fsdpi_trace_close(fsdpi_trace *trace)
{
    if (trace->file != NULL && trace->row == FSDPI_ROW_ALL) {
        const bool ended = is_written(trace) && fputs("\n]\n", trace->file) >= 0 && fflush(trace->file) == 0;

        check_written(trace, ended);
        check_written(trace, fclose(trace->file) == 0);
    }
    trace->file = NULL;
}

void fsdpi_trace_forget(fsdpi_trace *trace)
{
    if (trace->file != NULL) {
        __fpurge(trace->file); /* else written again where the process ends */
    }
    trace->file = NULL;
}

void fsdpi_trace_share(const fsdpi_trace *trace, fsdpi_trace *part, fsdpi_trace_row row)
{
    part->file  = trace->file;
    part->core  = trace->core;
    part->whole = trace->whole;
    part->rank  = trace->rank;
    part->row   = row;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

double fsdpi_trace_now(const fsdpi_trace *trace)
{
    return trace->file != NULL ? fsdpi_seconds() : 0.0;
}

/* Names are the program's and may hold any byte: those that JSON does not allow in a string become '?'. */
static void quotable(const char *name, char text[NAME_BYTES])
{
    size_t i = 0;

    for (; name[i] != '\0' && i < NAME_BYTES - 1; i++) {
        const unsigned char c = (unsigned char)name[i];
        text[i]               = c < 0x20 || c >= 0x7f || c == '"' || c == '\\' ? '?' : name[i];
    }
    text[i] = '\0';
}

enum { TIME_BYTES = 32 };

/* Microseconds, with a point whatever the locale has. */
static const char *microseconds(double seconds, char text[TIME_BYTES])
{
    const long long ns = (long long)(1e9 * seconds + 0.5);

    (void)snprintf(text, TIME_BYTES, "%lld.%03d", ns / 1000, (int)(ns % 1000));
    return text;
}

/* "KIND NAME" or, where there is no name, "KIND". */
static const char *separator(const char *name)
{
    return name[0] != '\0' ? " " : "";
}

void fsdpi_trace_span(const fsdpi_trace *trace, const char *kind, const char *name, double begin)
{
    char text[NAME_BYTES], at[TIME_BYTES], length[TIME_BYTES];

    if (!is_written(trace)) {
        return;
    }
    quotable(name, text);
    (void)microseconds(begin, at);
    (void)microseconds(fsdpi_seconds() - begin, length);
    const int written = fprintf(
        trace->file, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s%s%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"dur\":%s}",
        kind, kind, separator(text), text, trace->rank, (int)FSDPI_ROW_PASSES, at, length);
    check_written(trace, written >= 0);
}

void fsdpi_trace_operation(const fsdpi_trace *trace, const fsdpi_trace_event *event)
{
    char text[NAME_BYTES], at[TIME_BYTES], length[TIME_BYTES], issued[TIME_BYTES];

    if (!is_written(trace)) {
        return;
    }
    quotable(event->label != NULL ? event->label : "", text);
    (void)microseconds(event->begun, at);
    (void)microseconds(fsdpi_seconds() - event->begun, length);
    (void)microseconds(event->issued, issued);
    const int written =
        fprintf(trace->file,
                ",\n{\"ph\":\"X\",\"cat\":\"operation\",\"name\":\"%s%s%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s,"
                "\"dur\":%s,\"args\":{\"for\":\"%s\",\"sequence\":%llu,\"issued\":%s,\"algorithm\":\"%s\","
                "\"in_bytes\":%zu,\"out_bytes\":%zu,\"status\":\"%s\"}}",
                event->name, separator(text), text, trace->rank, (int)trace->row, at, length, event->purpose,
                (unsigned long long)event->sequence, issued, event->algorithm, event->in_bytes, event->out_bytes,
                fsdp_status_name(event->status));
    check_written(trace, written >= 0);
}
