/*
 * What an inquest has found, in words.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/plural.h"
#include "lib/node/hosts.h"
#include "lib/progress/inquest_words.h"
#include "lib/progress/queue_inside.h"

static const fsdpi_core *core_of(const fsdpi_queue *queue)
{
    return queue->engine.core;
}

/* Where there are several hosts, each behind its last rank: "ranks 2, 3 on node7, 5 on node9". */
static void name_ranks(const fsdpi_nodes *nodes, const fsdpi_rank_list *list, char *text, size_t size)
{
    size_t used                   = (size_t)snprintf(text, size, list->n + list->more == 1 ? "rank" : "ranks");
    char   host[FSDPI_HOST_BYTES] = "", next[FSDPI_HOST_BYTES] = "";

    if (list->n > 0) {
        fsdpi_host_of(nodes, list->ranks[0], next);
    }
    for (int i = 0; i < list->n && used < size; i++) {
        memcpy(host, next, sizeof host);
        next[0] = '\0';
        if (i + 1 < list->n) {
            fsdpi_host_of(nodes, list->ranks[i + 1], next);
        }
        const bool ends = strcmp(host, next) != 0;

        used += (size_t)snprintf(text + used, size - used, "%s %d%s%s", i > 0 ? "," : "", list->ranks[i],
                                 ends ? " on " : "", ends ? host : "");
    }
    if (list->more > 0 && used < size) {
        (void)snprintf(text + used, size - used, " and %d more", list->more);
    }
}

static void describe_notice(const fsdpi_queue *queue, const fsdpi_notice *notice, char *text, size_t size)
{
    const bool several = notice->missing.n > 1;
    char       ranks[FSDPI_RANKS_LISTED * (12 + FSDPI_HOST_BYTES) + 32];

    name_ranks(queue->engine.nodes, &notice->missing, ranks, sizeof ranks);
    if (fsdpi_rank_list_has(&notice->missing, core_of(queue)->rank)) {
        (void)snprintf(text, size, "this rank itself %s",
                       notice->stuck != 0 ? "does not get on" : "was stopped or late, and its peers had given up");
    } else if (notice->missing.n == 0) {
        (void)snprintf(text, size, "all ranks answer, and wait for each other");
    } else if (notice->stuck != 0) {
        (void)snprintf(text, size, "%s %s, but %s not get on", ranks, several ? "answer" : "answers",
                       several ? "do" : "does");
    } else {
        (void)snprintf(text, size, "%s %s not answer", ranks, several ? "do" : "does");
    }
}

void fsdpi_inquest_describe(const fsdpi_queue *queue, fsdp_status broken, char *text, size_t size)
{
    if (broken == FSDP_ERR_TIMEOUT && queue->inquest.known) {
        describe_notice(queue, &queue->inquest.notice, text, size);
    } else {
        (void)snprintf(text, size, "%s", fsdp_status_text(broken));
    }
}

void fsdpi_inquest_describe_end(const fsdpi_queue *queue, char *text, size_t size)
{
    const fsdp_request *head      = fsdpi_oldest(queue);
    const uint64_t      given_up  = queue->inquest.notice.sequence;
    const int           timeout_s = core_of(queue)->config.timeout_s;
    char                call[FSDPI_DETAIL_BYTES], why[FSDPI_DETAIL_BYTES];

    fsdpi_describe(&head->call, core_of(queue)->size, call, sizeof call);
    describe_notice(queue, &queue->inquest.notice, why, sizeof why);
    if (fsdpi_rank_list_has(&queue->inquest.notice.missing, core_of(queue)->rank) && given_up == head->sequence) {
        (void)snprintf(text, size,
                       "%s (operation %" PRIu64 ") has been given up after FSDP_TIMEOUT_S=%d seconds: %s; finalize the "
                       "context",
                       call, given_up, timeout_s, why);
    } else if (given_up != head->sequence) {
        (void)snprintf(text, size,
                       "%s (operation %" PRIu64 ") cannot be carried out, since operation %" PRIu64
                       " had not moved for FSDP_TIMEOUT_S=%d seconds on other ranks: %s; finalize the context",
                       call, head->sequence, given_up, timeout_s, why);
    } else {
        (void)snprintf(text, size,
                       "%s (operation %" PRIu64 ") has not moved for FSDP_TIMEOUT_S=%d seconds: %s; look for a rank "
                       "that died or made another call, and finalize the context",
                       call, head->sequence, timeout_s, why);
    }
}

void fsdpi_inquest_describe_stall(const fsdpi_queue *queue, const fsdpi_notice *notice, int64_t seconds, char *text,
                                  size_t size)
{
    const fsdp_request *head      = fsdpi_oldest(queue);
    const int           timeout_s = core_of(queue)->config.timeout_s;
    char                call[FSDPI_DETAIL_BYTES], why[FSDPI_DETAIL_BYTES], end[80];

    fsdpi_describe(&head->call, core_of(queue)->size, call, sizeof call);
    describe_notice(queue, notice, why, sizeof why);
    if (timeout_s > 0) {
        (void)snprintf(end, sizeof end, "FSDP_TIMEOUT_S=%d ends the wait", timeout_s);
    } else {
        (void)snprintf(end, sizeof end, "with FSDP_TIMEOUT_S=0 that may go on for ever");
    }
    (void)snprintf(text, size,
                   "%s (operation %" PRIu64 ") has not moved for %" PRId64
                   " second%s: %s; `fsdp-why %ld` on this host says more, and %s",
                   call, head->sequence, seconds, fsdpi_s((uint64_t)seconds), why, (long)getpid(), end);
}
