#include "lib/sync/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"

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

static void write_head(FILE *file, int rank)
{
    (void)fprintf(file, "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}", rank,
                  rank);
    for (size_t row = 0; row < sizeof ROWS / sizeof ROWS[0]; row++) {
        (void)fprintf(file,
                      ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%zu,\"args\":{\"name\":\"%s\"}}",
                      rank, row, ROWS[row]);
    }
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
    trace->rank = core->rank;
    trace->row  = FSDPI_ROW_ALL;
    write_head(trace->file, trace->rank);
    return FSDP_OK;
}

void fsdpi_trace_close(fsdpi_trace *trace)
{
    if (trace->file != NULL && trace->row == FSDPI_ROW_ALL) {
        (void)fputs("\n]\n", trace->file);
        (void)fclose(trace->file);
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
    *part     = *trace;
    part->row = row;
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

void fsdpi_trace_span(const fsdpi_trace *trace, const char *kind, const char *name, double begin)
{
    char text[NAME_BYTES];

    if (trace->file == NULL) {
        return;
    }
    quotable(name, text);
    (void)fprintf(trace->file,
                  ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s %s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
                  kind, kind, text, trace->rank, (int)FSDPI_ROW_PASSES, 1e6 * begin, 1e6 * (fsdpi_seconds() - begin));
}

void fsdpi_trace_operation(const fsdpi_trace *trace, const fsdpi_trace_event *event)
{
    char text[NAME_BYTES];

    quotable(event->label != NULL ? event->label : "", text);
    (void)fprintf(trace->file,
                  ",\n{\"ph\":\"X\",\"cat\":\"operation\",\"name\":\"%s %s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
                  "\"dur\":%.3f,\"args\":{\"for\":\"%s\",\"sequence\":%llu,\"issued\":%.3f,\"algorithm\":\"%s\","
                  "\"in_bytes\":%zu,\"out_bytes\":%zu,\"status\":\"%s\"}}",
                  event->name, text, trace->rank, (int)trace->row, 1e6 * event->begun,
                  1e6 * (fsdpi_seconds() - event->begun), event->purpose, (unsigned long long)event->sequence,
                  1e6 * event->issued, event->algorithm, event->in_bytes, event->out_bytes,
                  fsdp_status_name(event->status));
}
