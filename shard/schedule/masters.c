#include "shard/schedule/masters.h"

#include "lib/base/hash.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

static bool is_full(const fsdp_model *model)
{
    return model->ctx->config.verify == FSDP_VERIFY_FULL;
}

static uint64_t hash_masters(fsdpi_flat *flat)
{
    unsigned char        piece[16384];
    fsdp_model          *model = flat->model;
    const unsigned char *begin = flat->master;
    const size_t         bytes = fsdpi_held_elements(flat) * fsdpi_master_width(model);
    uint64_t             hash  = FSDPI_HASH_START;

    if (!fsdpi_is_on_device(model)) {
        return fsdpi_hash_bytes(hash, begin, bytes);
    }
    for (size_t at = 0; at < bytes; at += sizeof piece) {
        const size_t n = bytes - at < sizeof piece ? bytes - at : sizeof piece;

        fsdpi_compute_read(model, piece, FSDP_U8, begin + at, FSDP_U8, n);
        hash = fsdpi_hash_bytes(hash, piece, n);
    }
    return hash;
}

void fsdpi_masters_note(fsdp_model *model)
{
    if (!is_full(model)) {
        return;
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        flat->master_hash = hash_masters(flat);
    }
}

fsdp_status fsdpi_masters_check(fsdpi_flat *flat, const char *function)
{
    if (!is_full(flat->model) || hash_masters(flat) == flat->master_hash) {
        return FSDP_OK;
    }
    return fsdpi_fail(
        flat->model->ctx, FSDP_ERR_STATE,
        "%s: masters of unit '%s', of tensor '%s' or one behind it, have changed on rank %d since the last "
        "step; call fsdp_model_shards_changed when you have written to them",
        function, flat->name, flat->tensors[0]->name, flat->model->ctx->rank);
}
