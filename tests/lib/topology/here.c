#include "tests/lib/topology/here.h"

#include <stdio.h>
#include <string.h>

static fsdp_mask before;
static char      record[64];

int here_open(void **state)
{
    (void)state;
    (void)snprintf(record, sizeof record, "%s", record_here());
    return fsdpi_mask_now(&before) ? 0 : -1;
}

int here_close(void **state)
{
    (void)state;
    return remove(record);
}

int here_restore(void **state)
{
    fsdpi_binding binding = {.set_threads = true, .set_memory = true, .threads_before = before, .device_before = 0};

    (void)state;
    fsdpi_bind_undo(&binding);
    const fsdp_mask now = here_mask_now();
    return fsdpi_mask_equal(&before, &now) ? 0 : -1;
}

const fsdp_mask *here_mask_before(void)
{
    return &before;
}

fsdp_mask here_mask_now(void)
{
    fsdp_mask now;

    assert_true(fsdpi_mask_now(&now));
    return now;
}

const char *here_record(void)
{
    return record;
}

bool here_has_both_threads(void)
{
    int both = fsdp_mask_has(&before, 0) && fsdp_mask_has(&before, 1);

    MPI_Allreduce(MPI_IN_PLACE, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return both != 0;
}

fsdp_config here_config(int bind, const char *topology)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.bind     = bind;
    config.topology = topology;
    return config;
}

void assert_binding_says(const fsdp_context *ctx, const char *words)
{
    if (strstr(fsdp_binding(ctx), words) == NULL) {
        fail_msg("'%s' does not say '%s'", fsdp_binding(ctx), words);
    }
}
