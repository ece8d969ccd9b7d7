/*
 * Which of the records are of one job, and in which contexts: the newest, or that of a process.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/records/verdict.h"
#include "tools/records/view.h"

static int compare_process(const record_rank *a, const record_rank *b)
{
    const int host = strcmp(a->head.host, b->head.host), boot = strcmp(a->head.boot, b->head.boot);

    if (host != 0 || boot != 0) {
        return host != 0 ? host : boot;
    }
    if (a->section.pid != b->section.pid) {
        return a->section.pid < b->section.pid ? -1 : 1;
    }
    return a->section.started < b->section.started ? -1 : a->section.started > b->section.started;
}

static int by_process(const void *a, const void *b)
{
    return compare_process(*(const record_rank *const *)a, *(const record_rank *const *)b);
}

/* Of two records of one rank, the one that is read live, or was written by the rank itself, or later, comes first. */
static int by_worth(const record_rank *a, const record_rank *b)
{
    const bool own_a = a->is_live || a->head.written_by == a->section.shown_rank;
    const bool own_b = b->is_live || b->head.written_by == b->section.shown_rank;

    if (own_a != own_b) {
        return own_a ? -1 : 1;
    }
    return a->section.issued > b->section.issued ? -1 : a->section.issued < b->section.issued;
}

static int by_context(const void *a, const void *b)
{
    const record_rank *x = *(const record_rank *const *)a, *y = *(const record_rank *const *)b;

    if (x->head.id != y->head.id) {
        return x->head.id < y->head.id ? -1 : 1;
    }
    if (x->section.rank != y->section.rank) {
        return x->section.rank < y->section.rank ? -1 : 1;
    }
    return by_worth(x, y);
}

static const record_rank *find_newest(const records *all, long pid)
{
    const record_rank *newest = NULL;

    for (size_t i = 0; i < all->n; i++) {
        const record_rank *rank = &all->ranks[i];
        if ((pid == 0 || (rank->is_live && rank->section.pid == pid)) &&
            (newest == NULL || rank->head.opened.real > newest->head.opened.real)) {
            newest = rank;
        }
    }
    return newest;
}

/* Of one job: by the launcher's name for it; or else with a process in common. */
static bool has_process(const verdict_job *job, const record_rank *rank)
{
    return bsearch(&rank, job->by_process, job->n, sizeof(const record_rank *), by_process) != NULL;
}

static void take(verdict_job *job, const record_rank *rank)
{
    job->all[job->n++] = rank;
}

static size_t add_others(const records *all, const record_rank *newest, verdict_job *job)
{
    const size_t known = job->n;
    size_t       left  = 0;

    for (size_t i = 0; i < all->n; i++) {
        const record_rank *rank  = &all->ranks[i];
        const bool         same  = newest->head.job[0] != '\0' && strcmp(newest->head.job, rank->head.job) == 0;
        verdict_job        first = *job;
        first.n                  = known;
        if (rank->head.id == newest->head.id) {
            continue;
        }
        if (same || has_process(&first, rank)) {
            take(job, rank);
        } else {
            left++;
        }
    }
    return left;
}

static void drop_doubles(verdict_job *job)
{
    size_t n = 0;

    for (size_t i = 0; i < job->n; i++) {
        const record_rank *rank = job->all[i], *last = n > 0 ? job->all[n - 1] : NULL;
        if (last == NULL || last->head.id != rank->head.id || last->section.rank != rank->section.rank) {
            job->all[n++] = rank;
        }
    }
    job->n = n;
}

/* All records of a context tell of the same number of ranks; those that do not are not of it. */
static size_t drop_strangers(verdict_job *job)
{
    size_t n = 0, dropped = 0;

    for (size_t i = 0; i < job->n; i++) {
        const record_rank *rank = job->all[i], *last = n > 0 ? job->all[n - 1] : NULL;
        if (last != NULL && last->head.id == rank->head.id && last->head.size != rank->head.size) {
            dropped++;
        } else {
            job->all[n++] = rank;
        }
    }
    job->n = n;
    return dropped;
}

static bool find_contexts(verdict_job *job)
{
    job->contexts = calloc(job->n + 1, sizeof *job->contexts);
    for (size_t i = 0; job->contexts != NULL && i < job->n; i++) {
        if (i == 0 || job->all[i]->head.id != job->all[i - 1]->head.id) {
            job->contexts[job->n_contexts++].ranks = &job->all[i];
        }
        job->contexts[job->n_contexts - 1].n++;
    }
    return job->contexts != NULL;
}

static void sort_processes(verdict_job *job)
{
    memcpy(job->by_process, job->all, job->n * sizeof(const record_rank *));
    qsort(job->by_process, job->n, sizeof(const record_rank *), by_process);
}

bool verdict_pick_job(records *all, long pid, verdict_job *job)
{
    const record_rank *newest = find_newest(all, pid);

    *job = (verdict_job){0};
    if (newest == NULL) {
        return false;
    }
    job->all        = calloc(all->n, sizeof(const record_rank *));
    job->by_process = calloc(all->n, sizeof(const record_rank *));
    if (job->all == NULL || job->by_process == NULL) {
        verdict_release_job(job);
        return false;
    }
    for (size_t i = 0; i < all->n; i++) {
        if (all->ranks[i].head.id == newest->head.id) {
            take(job, &all->ranks[i]);
        }
    }
    sort_processes(job);
    const size_t left = add_others(all, newest, job);
    if (left > 0) {
        records_note(all, "%zu record%s of other jobs %s left out", left, left == 1 ? "" : "s",
                     left == 1 ? "is" : "are");
    }
    qsort(job->all, job->n, sizeof(const record_rank *), by_context);
    drop_doubles(job);
    const size_t strangers = drop_strangers(job);
    if (strangers > 0) {
        records_note(all, "%zu record%s of the same context with another number of ranks %s left out", strangers,
                     strangers == 1 ? "" : "s", strangers == 1 ? "is" : "are");
    }
    sort_processes(job);
    return find_contexts(job);
}

void verdict_release_job(verdict_job *job)
{
    free(job->all);
    free(job->by_process);
    free(job->contexts);
    *job = (verdict_job){0};
}

const record_rank *verdict_waiting(const verdict_job *job, const record_rank *rank)
{
    size_t low = 0, high = job->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_process(job->by_process[middle], rank) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < job->n && compare_process(job->by_process[low], rank) == 0; low++) {
        if (view_doing(job->by_process[low]) == FSDPI_DOING_WAITING) {
            return job->by_process[low];
        }
    }
    return NULL;
}
