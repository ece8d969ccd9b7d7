#include "shard/model/hash.h"

#include <string.h>

#include "collectives/collectives.h"
#include "fsdp/random.h"
#include "lib/base/hash.h"
#include "shard/schedule/failed_step.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"
#include "shard/state/tp_part.h"
#include "shard/storage/compute.h"

static const char hash_name[] = "fsdp_model_hash";

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
static uint64_t hash_row(fsdp_model *model, uint64_t stream, size_t begin, void *elements, size_t n)
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

/* Of this position's part of a tensor: elements have the numbers that they have in the whole. */
static uint64_t hash_run(fsdp_model *model, const fsdpi_tensor *tensor, size_t begin, void *elements, size_t n)
{
    const uint64_t stream = fsdp_random_stream(tensor->name);
    uint64_t       sum    = 0;

    for (size_t at = 0; at < n;) {
        const fsdpi_tp_run row = fsdpi_tp_run_at(tensor, begin + at, n - at);

        sum += hash_row(model, stream, row.whole, fsdpi_at(model, elements, at), row.count);
        at += row.count;
    }
    return sum;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Of what is held, modulo 2^64. The last two are 0 over all ranks where all that have a tensor have the same of it. */
typedef struct hashes {
    uint64_t all;
    uint64_t counted; /* each element once */
    uint64_t between_positions, between_stages;
} hashes;

enum { WORDS = sizeof(hashes) / sizeof(uint64_t) };

static void add(const fsdpi_tensor *tensor, uint64_t hash, hashes *sum)
{
    const fsdpi_plane *plane    = &tensor->unit->model->plane;
    const bool         first    = plane->tp_position == 0;
    const bool         is_whole = tensor->tp_parts == 1; /* on each position */

    sum->all += hash;
    sum->counted += fsdpi_is_counted(tensor) ? hash : 0;
    if (is_whole) {
        sum->between_positions += hash - (first ? (uint64_t)plane->tp_size * hash : 0);
    }
    if (!is_whole || first) {
        sum->between_stages += tensor->elsewhere ? hash : 0 - tensor->copies * hash;
    }
}

static void hash_held(fsdpi_flat *flat, hashes *sum)
{
    const fsdpi_held held = fsdpi_held_slices(flat);

    for (int i = 0; i < held.n; i++) {
        void        *slice = fsdpi_slice_in(flat, flat->master, i);
        const size_t n     = fsdpi_held_intervals(flat, i);

        for (size_t k = 0; k < n; k++) {
            const fsdp_interval *run    = &flat->intervals[k];
            const fsdpi_tensor  *tensor = flat->tensors[run->tensor];

            add(tensor,
                hash_run(flat->model, tensor, run->tensor_begin, fsdpi_at(flat->model, slice, run->shard_begin),
                         run->count),
                sum);
        }
    }
}

/* ---- over the ranks ---------------------------------------------------------------------------------------------- */

static void join(hashes *sum, const hashes *more)
{
    sum->all += more->all;
    sum->counted += more->counted;
    sum->between_positions += more->between_positions;
    sum->between_stages += more->between_stages;
}

/* Of what is held in slices, the hashes add up; `whole`, of what each rank holds whole, must be equal. */
static fsdp_status combine(fsdp_model *model, hashes *hash, const hashes *whole, fsdp_status status)
{
    static const char   label[] = "parameters held whole by each rank, or group";
    const fsdpi_purpose purpose = {.name = hash_name, .status = status};

    if (model->failed) {
        return status;
    }
    FSDP_TRY(fsdpi_groups_agree(model, purpose.name, false));
    if (model->divides && model->replicas == NULL) {
        FSDP_TRY(fsdpi_allreduce(model->ctx, &purpose, FSDP_IN_PLACE, hash, WORDS, FSDP_I64, FSDP_SUM));
        join(hash, whole);
        return model->holds_whole ? fsdpi_agree(model->ctx, purpose.name, label, whole->all, status, true) : FSDP_OK;
    }
    if (model->replicas != NULL) {
        FSDP_TRY(fsdpi_agree(model->ctx, purpose.name, "arguments", 0, status, true));
        FSDP_TRY(fsdpi_allreduce(model->shards, &purpose, FSDP_IN_PLACE, hash, WORDS, FSDP_I64, FSDP_SUM));
    }
    join(hash, whole);
    return fsdpi_agree(model->ctx, purpose.name, label, hash->all, status, true);
}

/* Of a model on a mesh the parts, which all ranks of a part's context know. */
static fsdp_status combine_parts(fsdp_model *model, hashes *hash, fsdp_status status)
{
    fsdp_context *all = model->plane.ctx;

    FSDP_TRY(fsdpi_plane_follow(model, hash_name, status));
    if (all == model->ctx) {
        return FSDP_OK;
    }
    if (model->ctx->rank != 0) {
        *hash = (hashes){0};
    }
    status = fsdp_allreduce(all, FSDP_IN_PLACE, hash, WORDS, FSDP_I64, FSDP_SUM);
    fsdpi_error_hand_on(all, model->ctx, status);
    if (status == FSDP_OK && (hash->between_positions != 0 || hash->between_stages != 0)) {
        status = fsdpi_fail_together(
            model->ctx, FSDP_ERR_MISMATCH,
            "%s: a tensor that %s hold whole is not the same on all of them; give them equal "
            "gradients, bit by bit",
            hash_name, hash->between_positions != 0 ? "all positions of the tensor axis" : "several stages");
        return fsdpi_plane_agree(model, hash_name, "copies", 0, status);
    }
    return status;
}

fsdp_status fsdp_model_hash(fsdp_model *model, uint64_t *hash)
{
    hashes sum = {0}, whole = {0};

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL", hash_name);
    }
    fsdp_status status = FSDP_OK;
    if (hash == NULL) {
        status = fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: the place for the hash is NULL", hash_name);
    } else if (!model->committed) {
        status = fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: call fsdp_model_commit first", hash_name);
    } else {
        status = fsdpi_step_check(model, hash_name);
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL && status == FSDP_OK; flat = flat->next) {
        hash_held(flat, fsdpi_is_whole(flat) ? &whole : &sum);
    }
    status = status != FSDP_OK ? status : fsdpi_compute_status(model);
    status = combine(model, &sum, &whole, status);
    status = fsdpi_step_tell(model, model->failed ? status : combine_parts(model, &sum, status));
    if (status == FSDP_OK && hash != NULL) {
        *hash = sum.counted;
    }
    return status;
}
