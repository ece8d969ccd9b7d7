#include "lib/progress/verdicts.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/core.h"
#include "lib/base/error.h"

void fsdpi_summarize(const fsdpi_verdict *one, fsdpi_summary *all)
{
    const bool bad = one->status != FSDP_OK;

    memset(all, 0, sizeof *all);
    all->first = *one;
    if (bad) {
        all->failed = 1;
        all->alike  = 1;
        all->bad[0] = *one;
    }
}

static bool is_same_text(const fsdpi_verdict *a, const fsdpi_verdict *b)
{
    return strcmp(a->text, b->text) == 0;
}

/* The lowest rank of a set whose text is not `text`; NULL: they are all the same. */
static const fsdpi_verdict *first_unlike(const fsdpi_summary *set, const fsdpi_verdict *text)
{
    if (!is_same_text(&set->first, text)) {
        return &set->first;
    }
    return set->differ ? &set->other : NULL;
}

static void join_texts(fsdpi_summary *all, const fsdpi_summary *others)
{
    const fsdpi_verdict  first = others->first.place < all->first.place ? others->first : all->first;
    const fsdpi_verdict *a = first_unlike(all, &first), *b = first_unlike(others, &first);
    const fsdpi_verdict *unlike = b != NULL && (a == NULL || b->place < a->place) ? b : a;

    if (unlike != NULL) {
        all->other  = *unlike; /* before the first one is replaced, which it may be */
        all->differ = 1;
    }
    all->first = first;
}

static int32_t n_named(const fsdpi_summary *set)
{
    return set->failed < FSDPI_RANKS_NAMED ? set->failed : FSDPI_RANKS_NAMED;
}

static void join_bad(fsdpi_summary *all, const fsdpi_summary *others)
{
    const int32_t n = n_named(all), n_others = n_named(others);
    fsdpi_verdict mine[FSDPI_RANKS_NAMED];

    all->alike = n == 0          ? others->alike
                 : n_others == 0 ? all->alike
                                 : all->alike && others->alike && is_same_text(&all->bad[0], &others->bad[0]);
    memcpy(mine, all->bad, sizeof mine);
    for (int32_t i = 0, a = 0, b = 0; i < FSDPI_RANKS_NAMED && a + b < n + n_others; i++) {
        const bool from_mine = b == n_others || (a < n && mine[a].place < others->bad[b].place);
        all->bad[i]          = from_mine ? mine[a++] : others->bad[b++];
    }
    all->failed += others->failed;
}

void fsdpi_summary_join(fsdpi_summary *all, const fsdpi_summary *others)
{
    join_texts(all, others);
    join_bad(all, others);
}

/* ---- by MPI -------------------------------------------------------------------------------------------------------- */

/* As MPI_User_function says, whose parameters are not const. */
static void join_all(void *others, void *all, int *n, MPI_Datatype *type) /* NOLINT(readability-non-const-parameter) */
{
    (void)type;
    for (int i = 0; i < *n; i++) {
        fsdpi_summary mine, theirs;

        memcpy(&mine, (unsigned char *)all + (size_t)i * sizeof mine, sizeof mine);
        memcpy(&theirs, (const unsigned char *)others + (size_t)i * sizeof theirs, sizeof theirs);
        fsdpi_summary_join(&mine, &theirs);
        memcpy((unsigned char *)all + (size_t)i * sizeof mine, &mine, sizeof mine);
    }
}

fsdp_status fsdpi_verdicts_open(fsdpi_verdicts *verdicts, fsdp_context *ctx)
{
    FSDPI_TRY_MPI(ctx, MPI_Type_contiguous((int)sizeof(fsdpi_summary), MPI_BYTE, &verdicts->type));
    FSDPI_TRY_MPI(ctx, MPI_Type_commit(&verdicts->type));
    FSDPI_TRY_MPI(ctx, MPI_Op_create(join_all, 1, &verdicts->op));
    return FSDP_OK;
}

void fsdpi_verdicts_close(fsdpi_verdicts *verdicts)
{
    if (verdicts->op != MPI_OP_NULL) {
        (void)MPI_Op_free(&verdicts->op);
    }
    if (verdicts->type != MPI_DATATYPE_NULL) {
        (void)MPI_Type_free(&verdicts->type);
    }
}

/* ---- as an error --------------------------------------------------------------------------------------------------- */

bool fsdpi_verdict_is_first(const fsdpi_summary *all, const fsdpi_verdict *mine)
{
    for (int32_t i = 0; i < n_named(all); i++) {
        if (all->bad[i].place < mine->place && is_same_text(&all->bad[i], mine)) {
            return false;
        }
    }
    return true;
}

/* Several ranks say the same. */
static fsdp_status failed_alike(const fsdpi_summary *all, fsdp_context *ctx)
{
    char   ranks[96] = "";
    size_t used      = 0;

    if (all->failed == fsdpi_core_of(ctx)->size) {
        (void)snprintf(ranks, sizeof ranks, "all %d ranks", (int)all->failed);
    }
    for (int32_t i = 0; i < n_named(all) && all->failed < fsdpi_core_of(ctx)->size; i++) {
        used +=
            (size_t)snprintf(ranks + used, sizeof ranks - used, "%s %d", i == 0 ? "ranks" : ",", (int)all->bad[i].rank);
    }
    if (used > 0 && all->failed > n_named(all)) {
        (void)snprintf(ranks + used, sizeof ranks - used, " and %d more", (int)(all->failed - n_named(all)));
    }
    return fsdpi_record(ctx, (fsdp_status)all->bad[0].status, "%s: %.*s", ranks, FSDPI_DETAIL_BYTES, all->bad[0].text);
}

/* Some rank's arguments are bad: names the first few of those ranks with what each had to say. */
static fsdp_status failed_ranks(const fsdpi_summary *all, fsdp_context *ctx)
{
    char   text[FSDPI_ERROR_BYTES];
    size_t used = 0;

    if (all->alike && all->failed > 1) {
        return failed_alike(all, ctx);
    }
    for (int32_t i = 0; i < n_named(all) && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d: %.*s", i > 0 ? "; " : "",
                                 (int)all->bad[i].rank, FSDPI_DETAIL_BYTES, all->bad[i].text);
    }
    if (all->failed > n_named(all) && used < sizeof text) {
        (void)snprintf(text + used, sizeof text - used, "; and %d more ranks", (int)(all->failed - n_named(all)));
    }
    return fsdpi_record(ctx, (fsdp_status)all->bad[0].status, "%s", text);
}

/* All arguments are good but differ: names the first rank's call and the first that reads otherwise. */
static fsdp_status differing_ranks(const fsdpi_summary *all, fsdp_context *ctx)
{
    if (!all->differ) {
        return fsdpi_record(ctx, FSDP_ERR_MISMATCH,
                            "all ranks call %s, but with arguments that differ in what is not "
                            "shown here; pass the same on every rank",
                            all->first.text);
    }
    return fsdpi_record(ctx, FSDP_ERR_MISMATCH,
                        "rank %d calls %s, but rank %d calls %s; make the same call on every rank",
                        (int)all->first.rank, all->first.text, (int)all->other.rank, all->other.text);
}

fsdp_status fsdpi_verdicts_error(const fsdpi_summary *all, fsdp_context *ctx)
{
    return all->failed > 0 ? failed_ranks(all, ctx) : differing_ranks(all, ctx);
}
