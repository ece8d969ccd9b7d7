#include "tools/topo/base/rank_list.h"

#include <stdio.h>
#include <string.h>

#define CUT "..."

/* Appends the open run; where it does not fit, three dots, once. */
static void close_run(const topo_rank_list *list, char *text, size_t size)
{
    const size_t used = strlen(text), cut = strlen(CUT);
    char         run[32];

    (void)snprintf(run, sizeof run, list->last > list->first ? "%s%d-%d" : "%s%d", used ? "," : "", list->first,
                   list->last);
    if (used >= cut && strcmp(text + used - cut, CUT) == 0) {
        return;
    }
    if (used + strlen(run) + cut < size) {
        (void)snprintf(text + used, size - used, "%s", run);
    } else if (used + cut < size) {
        (void)snprintf(text + used, size - used, CUT);
    }
}

void topo_rank_list_add(topo_rank_list *list, int rank)
{
    if (list->n > 0 && rank != list->last + 1) {
        close_run(list, list->text, sizeof list->text);
    }
    if (list->n == 0 || rank != list->last + 1) {
        list->first = rank;
    }
    list->last = rank;
    list->n++;
}

void topo_rank_list_text(const topo_rank_list *list, char *text, size_t size)
{
    char all[TOPO_RANK_LIST_BYTES];

    (void)snprintf(all, sizeof all, "%s", list->text);
    if (list->n > 0) {
        close_run(list, all, sizeof all);
    }
    (void)snprintf(text, size, "%s%s", list->n == 0 ? "no rank" : list->n == 1 ? "rank " : "ranks ", all);
    if (size > sizeof CUT && strlen(all) + strlen("ranks ") >= size) {
        (void)snprintf(text + size - sizeof CUT, sizeof CUT, CUT);
    }
}
