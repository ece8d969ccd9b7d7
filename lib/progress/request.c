#include "lib/progress/request.h"

#include <stdio.h>

#include "lib/base/error.h"

enum { COUNTS_SHOWN = 6 };

static void describe_counts(const fsdpi_call *call, int ranks, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, " of");

    for (int r = 0; r < ranks && r < COUNTS_SHOWN && used < size; r++) {
        used += (size_t)snprintf(text + used, size - used, "%s%zu", r > 0 ? "+" : " ", call->counts[r]);
    }
    if (ranks > COUNTS_SHOWN && used < size) {
        (void)snprintf(text + used, size - used, "+...");
    }
}

void fsdpi_describe(const fsdpi_call *call, int ranks, char *text, size_t size)
{
    char what[80] = "", op[16] = "", root[24] = "";

    if (call->has_data && call->division == FSDPI_DIVISION_COUNTS && call->counts != NULL) {
        describe_counts(call, ranks, what, sizeof what);
    } else if (call->has_data) {
        (void)snprintf(what, sizeof what, " of %zu", call->count);
    }
    if (call->has_op) {
        (void)snprintf(op, sizeof op, ", %s", fsdp_redop_name(call->op));
    }
    if (call->has_root) {
        (void)snprintf(root, sizeof root, ", root %d", call->root);
    }
    (void)snprintf(text, size, "%s%s%s%s%s%s%s%s%s%s%s%s", call->name, what, call->has_data ? " " : "",
                   call->has_data ? fsdp_dtype_name(call->dtype) : "", call->has_data ? " elements" : "",
                   call->on_device ? " on the GPU" : "", op, root, call->label != NULL ? ", " : "",
                   call->label != NULL ? call->label : "", call->note != NULL ? " behind: " : "",
                   call->note != NULL ? call->note : "");
}

void fsdpi_take_local_verdict(fsdp_request *request, fsdp_status status)
{
    request->verdict.status = (int32_t)status;
    request->verdict.place  = request->engine->core->rank;
    request->verdict.rank   = request->engine->core->shown_rank;
    if (status != FSDP_OK) {
        (void)snprintf(request->verdict.text, sizeof request->verdict.text, "%.*s", FSDPI_DETAIL_BYTES - 1,
                       fsdpi_error_recorded(request->ctx));
    }
}
