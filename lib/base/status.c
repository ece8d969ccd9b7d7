#include "fsdp/status.h"

const char *fsdp_status_name(fsdp_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return #name;
        FSDP_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "FSDP_UNKNOWN";
}

const char *fsdp_status_text(fsdp_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return text;
        FSDP_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "not a status of this library";
}
