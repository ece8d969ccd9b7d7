#include "lib/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/context.h"

enum { NAME_BYTES = 512 };

static const char *const LANES[] = {"passes", "operations", "operations within the group", "operations between groups"};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static _Atomic int n_opened;

static void file_name(const fsdp_context *ctx, int number, char name[PATH_MAX])
{
    if (number == 0) {
        (void)snprintf(name, PATH_MAX, "%s.%d.json", ctx->config.trace, ctx->rank);
    } else {
        (void)snprintf(name, PATH_MAX, "%s.%d.%d.json", ctx->config.trace, ctx->rank, number);
    }
}

static void write_head(const fsdp_context *ctx)
{
    FILE *file = ctx->trace.file;

    (void)fprintf(file, "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}",
                  ctx->rank, ctx->rank);
    for (size_t lane = 0; lane < sizeof LANES / sizeof LANES[0]; lane++) {
        (void)fprintf(file,
                      ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%zu,\"args\":{\"name\":\"%s\"}}",
                      ctx->rank, lane, LANES[lane]);
    }
}

fsdp_status fsdpi_trace_open(fsdp_context *ctx)
{
    char name[PATH_MAX];

    if (ctx->config.trace == NULL || ctx->config.trace[0] == '\0') {
        return FSDP_OK;
    }
    file_name(ctx, atomic_fetch_add(&n_opened, 1), name);
    ctx->trace.file = fopen(name, "w");
    if (ctx->trace.file == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "FSDP_TRACE: '%.200s' cannot be written: %s; name a folder that exists",
                          name, strerror(errno));
    }
    ctx->trace.rank = ctx->rank;
    ctx->trace.lane = FSDPI_LANE_ALL;
    write_head(ctx);
    return FSDP_OK;
}

void fsdpi_trace_close(fsdp_context *ctx)
{
    if (ctx->trace.file != NULL && ctx->trace.lane == FSDPI_LANE_ALL) {
        (void)fputs("\n]\n", ctx->trace.file);
        (void)fclose(ctx->trace.file);
    }
    ctx->trace.file = NULL;
}

void fsdpi_trace_share(const fsdp_context *ctx, fsdp_context *part, fsdpi_lane lane)
{
    part->trace      = ctx->trace;
    part->trace.lane = lane;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

double fsdpi_trace_now(const fsdp_context *ctx)
{
    return ctx->trace.file != NULL ? fsdpi_seconds() : 0.0;
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

void fsdpi_trace_span(const fsdp_context *ctx, const char *kind, const char *name, double begin)
{
    char text[NAME_BYTES];

    if (ctx->trace.file == NULL) {
        return;
    }
    quotable(name, text);
    (void)fprintf(ctx->trace.file,
                  ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s %s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
                  kind, kind, text, ctx->trace.rank, (int)FSDPI_LANE_PASSES, 1e6 * begin,
                  1e6 * (fsdpi_seconds() - begin));
}

void fsdpi_trace_operation(const fsdp_request *request)
{
    const fsdp_context *ctx  = request->ctx;
    const fsdpi_call   *call = &request->call;
    char                text[NAME_BYTES];

    quotable(call->label != NULL ? call->label : "", text);
    (void)fprintf(ctx->trace.file,
                  ",\n{\"ph\":\"X\",\"cat\":\"operation\",\"name\":\"%s %s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
                  "\"dur\":%.3f,\"args\":{\"for\":\"%s\",\"sequence\":%llu,\"issued\":%.3f,\"algorithm\":\"%s\","
                  "\"in_bytes\":%zu,\"out_bytes\":%zu,\"status\":\"%s\"}}",
                  call->collective != NULL ? call->collective->name : "agreement", text, ctx->trace.rank,
                  (int)ctx->trace.lane, 1e6 * request->begun, 1e6 * (fsdpi_seconds() - request->begun), call->name,
                  (unsigned long long)request->sequence, 1e6 * request->issued,
                  request->algorithm != NULL ? request->algorithm->name : "none", call->in_bytes, call->out_bytes,
                  fsdp_status_name(request->status));
}
