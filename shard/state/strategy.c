#include "shard/state/strategy.h"

#include <string.h>

#include "lib/base/error.h"

#define STRATEGY_NAMES "FULL_SHARD, SHARD_GRAD_OP, SHARD_OPTIM, NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2"

const char *fsdp_strategy_name(fsdp_strategy strategy)
{
    switch (strategy) {
#define STRATEGY_CASE(name, value, text)                                                                               \
    case name:                                                                                                         \
        return text;
        FSDP_STRATEGY_LIST(STRATEGY_CASE)
#undef STRATEGY_CASE
    }
    return "unknown";
}

bool fsdpi_strategy_find(const char *name, size_t length, fsdp_strategy *strategy)
{
    for (int i = 0; i < FSDP_N_STRATEGIES; i++) {
        const char *known = fsdp_strategy_name((fsdp_strategy)i);

        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            *strategy = (fsdp_strategy)i;
            return true;
        }
    }
    return false;
}

fsdp_status fsdp_strategy_parse(const char *name, fsdp_strategy *strategy)
{
    if (name == NULL || strategy == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_strategy_parse: a pointer is NULL");
    }
    return fsdpi_strategy_find(name, strlen(name), strategy)
               ? FSDP_OK
               : fsdpi_fail(NULL, FSDP_ERR_ARG, "'%s' is no strategy; use " STRATEGY_NAMES, name);
}
