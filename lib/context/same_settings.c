#include "lib/context/same_settings.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/setting.h"
#include "lib/base/yielding.h"
#include "lib/context/context.h"
#include "lib/progress/agreement.h"

/* Of what may differ: a word for each setting, and one for the table. */
enum { TABLE = FSDPI_N_SETTINGS, N_WORDS };

static uint64_t word_of(const fsdp_context *ctx, int i)
{
    if (i == TABLE) {
        return fsdpi_table_fingerprint(&ctx->table);
    }
    return FSDPI_SETTINGS[i].agree ? (uint64_t)fsdpi_setting_value(&FSDPI_SETTINGS[i], &ctx->config) : 0;
}

/* The largest of a word and of its complement over all ranks are complements just where all words are equal. */
static fsdp_status find_differing(fsdp_context *ctx, bool *differs)
{
    uint64_t words[2 * N_WORDS];

    for (int i = 0; i < N_WORDS; i++) {
        words[i]           = word_of(ctx, i);
        words[N_WORDS + i] = ~words[i];
    }
    FSDPI_TRY_MPI(ctx,
                  fsdpi_mpi_allreduce(words, 2 * N_WORDS, MPI_UINT64_T, MPI_MAX, ctx->comm, ctx->config.timeout_s));
    for (int i = 0; i < N_WORDS; i++) {
        differs[i] = words[i] != ~words[N_WORDS + i];
    }
    return FSDP_OK;
}

static void describe_table(const fsdp_context *ctx, char *text, size_t size)
{
    if (ctx->config.tuning_file[0] == '\0') {
        (void)snprintf(text, size, "no FSDP_TUNING_FILE");
        return;
    }
    (void)snprintf(text, size, "FSDP_TUNING_FILE=%.120s (%zu rows, checksum %08" PRIx32 ")", ctx->config.tuning_file,
                   ctx->table.n, (uint32_t)fsdpi_table_fingerprint(&ctx->table));
}

/* This rank's values of those that differ. */
static void describe(const fsdp_context *ctx, const bool *differs, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < N_WORDS && used < size; i++) {
        char value[FSDPI_SETTING_TEXT_BYTES], one[FSDPI_DETAIL_BYTES];

        if (!differs[i]) {
            continue;
        }
        if (i == TABLE) {
            describe_table(ctx, one, sizeof one);
        } else {
            fsdpi_setting_text(&FSDPI_SETTINGS[i], &ctx->config, value, sizeof value);
            (void)snprintf(one, sizeof one, "%s=%s", FSDPI_SETTINGS[i].variable, value);
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? " and " : "", one);
    }
}

static fsdp_status mismatch(fsdp_context *ctx, const fsdpi_summary *all)
{
    (void)fsdpi_record(ctx, FSDP_ERR_MISMATCH, "rank %d has %s, but rank %d has %s; give all ranks the same",
                       (int)all->first.rank, all->first.text, (int)all->other.rank, all->other.text);
    if (ctx->rank == 0) {
        fsdpi_log(ctx, FSDP_LOG_ERROR, "%s (%s)", ctx->error, fsdp_status_name(FSDP_ERR_MISMATCH));
    }
    return FSDP_ERR_MISMATCH;
}

fsdp_status fsdpi_same_settings(fsdp_context *ctx, fsdp_status status)
{
    const fsdpi_engine *engine = &ctx->queue.engine;
    uint64_t            all    = FSDPI_HASH_START;
    bool                agreed = false, differs[N_WORDS];
    char                text[FSDPI_DETAIL_BYTES];

    for (int i = 0; i < N_WORDS; i++) {
        all = fsdpi_hash_u64(all, word_of(ctx, i));
    }
    FSDP_TRY(fsdpi_compare_by_mpi(engine, status, all, &agreed));
    if (agreed) {
        return FSDP_OK;
    }
    FSDP_TRY(find_differing(ctx, differs));
    describe(ctx, differs, text, sizeof text);
    FSDP_TRY(fsdpi_tell_by_mpi(engine, status, text));
    return ctx->verdicts.all.failed > 0 ? fsdpi_verdicts_error(&ctx->verdicts.all, ctx)
                                        : mismatch(ctx, &ctx->verdicts.all);
}
