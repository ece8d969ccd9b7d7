#include "shard/model/hash.h"

#include <string.h>

#include "collectives/collectives.h"
#include "fsdp/random.h"
#include "lib/base/hash.h"
#include "shard/schedule/failed_step.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

/* The finaliser of splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t bits_of(const void *elements, size_t i, fsdp_dtype dtype)
{
    uint64_t wide;
    uint32_t narrow;

    if (dtype == FSDP_F64) {
        memcpy(&wide, (const double *)elements + i, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const float *)elements + i, sizeof narrow);
    return narrow;
}

uint64_t fsdpi_hash_elements(uint64_t stream, size_t begin, const void *elements, size_t n, fsdp_dtype dtype)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += mixed(mixed(stream + begin + i) ^ bits_of(elements, i, dtype));
    }
    return sum;
}

enum { PIECE = 4096 }; /* ELEMENTS that are brought from a GPU at a time */

/* As fsdpi_hash_elements(), of what a model holds. */
static uint64_t hash_run(fsdp_model *model, uint64_t stream, size_t begin, void *elements, size_t n)
{
    double   piece[PIECE]; /* of the masters' type */
    uint64_t sum = 0;

    if (!fsdpi_is_on_device(model)) {
        return fsdpi_hash_elements(stream, begin, elements, n, model->master_dtype);
    }
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t count = n - i < PIECE ? n - i : PIECE;

        fsdpi_compute_read(model, piece, model->master_dtype, fsdpi_at(model, elements, i), model->master_dtype, count);
        sum += fsdpi_hash_elements(stream, begin + i, piece, count, model->master_dtype);
    }
    return sum;
}

static uint64_t hash_held(fsdpi_flat *flat)
{
    const fsdpi_held held = fsdpi_held_slices(flat);
    uint64_t         sum  = 0;

    for (int i = 0; i < held.n; i++) {
        void        *slice = fsdpi_slice_in(flat, flat->master, i);
        const size_t n     = fsdpi_held_intervals(flat, i);

        for (size_t k = 0; k < n; k++) {
            const fsdp_interval *run = &flat->intervals[k];

            sum += hash_run(flat->model, fsdp_random_stream(flat->tensors[run->tensor]->name), run->tensor_begin,
                            fsdpi_at(flat->model, slice, run->shard_begin), run->count);
        }
    }
    return sum;
}

/* Of what is held in slices, the hashes add up; `whole`, of what each rank holds whole, must be equal. */
static fsdp_status combine(fsdp_model *model, uint64_t *hash, uint64_t whole, fsdp_status status)
{
    static const char   label[] = "parameters held whole by each rank, or group";
    const fsdpi_purpose purpose = {.name = "fsdp_model_hash", .status = status};

    if (model->failed) {
        return status;
    }
    FSDP_TRY(fsdpi_groups_agree(model, purpose.name, false));
    if (model->divides && model->replicas == NULL) {
        FSDP_TRY(fsdpi_allreduce(model->ctx, &purpose, FSDP_IN_PLACE, hash, 1, FSDP_I64, FSDP_SUM));
        *hash += whole;
        return model->holds_whole ? fsdpi_agree(model->ctx, purpose.name, label, whole, status, true) : FSDP_OK;
    }
    if (model->replicas != NULL) {
        FSDP_TRY(fsdpi_agree(model->ctx, purpose.name, "arguments", 0, status, true));
        FSDP_TRY(fsdpi_allreduce(model->shards, &purpose, FSDP_IN_PLACE, hash, 1, FSDP_I64, FSDP_SUM));
    }
    *hash += whole;
    return fsdpi_agree(model->ctx, purpose.name, label, *hash, status, true);
}

fsdp_status fsdp_model_hash(fsdp_model *model, uint64_t *hash)
{
    uint64_t sum = 0, whole = 0;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_hash: the model is NULL");
    }
    fsdp_status status = FSDP_OK;
    if (hash == NULL) {
        status = fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_model_hash: the place for the hash is NULL");
    } else if (!model->committed) {
        status = fsdpi_fail(model->ctx, FSDP_ERR_STATE, "fsdp_model_hash: call fsdp_model_commit first");
    } else {
        status = fsdpi_step_check(model, "fsdp_model_hash");
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL && status == FSDP_OK; flat = flat->next) {
        *(fsdpi_is_whole(flat) ? &whole : &sum) += hash_held(flat);
    }
    status = status != FSDP_OK ? status : fsdpi_compute_status(model);
    status = fsdpi_step_tell(model, combine(model, &sum, whole, status));
    if (status == FSDP_OK && hash != NULL) {
        *hash = sum;
    }
    return status;
}
