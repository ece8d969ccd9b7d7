/*
 * Ranks are grouped if their texts differ in numbers only: "part 1 of 2 of the 4 cores of NUMA node 0" and "part 2 of 2 of the 4
 * cores of NUMA node 1" are one reason, "part N of 2 of the 4 cores of NUMA node N".
 */
#include "tools/topo/text/reasons.h"

#include <ctype.h>
#include <string.h>

#include "tools/topo/base/rank_list.h"
#include "tools/topo/base/words.h"

#define MOST_TEXTS 5

/* What is said of one rank; a text that is "" is left out. */
typedef struct said {
    const char *text[MOST_TEXTS];
    char        spare[64];
} said;

/* A kind of texts, and the names that they are printed with. */
typedef struct kind {
    const char *names[MOST_TEXTS];
    size_t      n;
    void (*say)(const topo_report *report, size_t rank, said *texts);
} kind;

static void say_reasons(const topo_report *report, size_t rank, said *texts)
{
    const fsdp_place *p = &report->plan[rank];

    *texts = (said){.text = {p->gpu_reason, p->cores_reason, p->memory_reason, p->nic_reason}};
    if (p->spare >= 0) {
        (void)snprintf(texts->spare, sizeof texts->spare, "hardware thread %d, for the progress thread", p->spare);
    }
    texts->text[4] = texts->spare;
}

static void say_binding(const topo_report *report, size_t rank, said *texts)
{
    *texts = (said){.text = {report->ranks[rank].binding}};
}

static const kind reasons  = {{"GPU", "cores", "memory", "network", "spare"}, 5, say_reasons};
static const kind bindings = {{""}, 1, say_binding};

/* BYTES of the number, list or PCI address that a text begins with; 0: it begins with none. */
static size_t number_length(const char *text)
{
    size_t n = 0;

    if (!isdigit((unsigned char)text[0])) {
        return 0;
    }
    while (isxdigit((unsigned char)text[n]) ||
           (text[n] && strchr(":.,-/", text[n]) && isxdigit((unsigned char)text[n + 1]))) {
        n++;
    }
    return n;
}

static int are_alike_texts(const char *a, const char *b)
{
    while (*a && *b) {
        const size_t in_a = number_length(a), in_b = number_length(b);

        if ((in_a > 0) != (in_b > 0) || (in_a == 0 && *a != *b)) {
            return 0;
        }
        a += in_a > 0 ? in_a : 1;
        b += in_b > 0 ? in_b : 1;
    }
    return *a == *b;
}

static int are_alike(const topo_report *report, const kind *k, size_t i, size_t other)
{
    said a, b;

    k->say(report, i, &a);
    k->say(report, other, &b);
    for (size_t t = 0; t < k->n; t++) {
        if (!are_alike_texts(a.text[t], b.text[t])) {
            return 0;
        }
    }
    return 1;
}

static int has_been(const topo_report *report, const kind *k, size_t rank)
{
    for (size_t i = 0; i < rank; i++) {
        if (are_alike(report, k, i, rank)) {
            return 1;
        }
    }
    return 0;
}

/* Which of the numbers in text `t` of a group, that of `first`, are others elsewhere in it: a bit each. */
static unsigned long long differing(const topo_report *report, const kind *k, size_t first, size_t t)
{
    unsigned long long bits = 0;

    for (size_t i = first + 1; i < report->n; i++) {
        unsigned long long bit = 1;
        said               mine, others;

        if (!are_alike(report, k, first, i)) {
            continue;
        }
        k->say(report, first, &mine);
        k->say(report, i, &others);
        for (const char *a = mine.text[t], *b = others.text[t]; *a && *b;) {
            const size_t in_a = number_length(a), in_b = number_length(b);

            bits |= in_a > 0 && (in_a != in_b || strncmp(a, b, in_a) != 0) ? bit : 0;
            bit <<= in_a > 0;
            a += in_a > 0 ? in_a : 1;
            b += in_b > 0 ? in_b : 1;
        }
    }
    return bits;
}

/* With N for each number that `bits` has. */
static void write_text(FILE *file, const char *text, unsigned long long bits)
{
    while (*text) {
        const size_t length = number_length(text);

        if (length > 0) {
            (void)fprintf(file, "%.*s", bits & 1 ? 1 : (int)length, bits & 1 ? "N" : text);
            bits >>= 1;
        } else {
            (void)fputc(*text, file);
        }
        text += length > 0 ? length : 1;
    }
    (void)fputc('\n', file);
}

/* A rank, or the group that it is the first of. */
static void write_group(FILE *file, const topo_report *report, const kind *k, size_t first, int all)
{
    topo_rank_list list = {0};
    char           who[TOPO_RANK_LIST_BYTES];
    said           texts;

    for (size_t i = first; i < report->n; i++) {
        if (i == first || (!all && are_alike(report, k, first, i))) {
            topo_rank_list_add(&list, report->ranks[i].before.rank);
        }
    }
    topo_rank_list_text(&list, who, sizeof who);
    (void)fprintf(file, k->n > 1 ? "  %s\n" : "  %s  ", who);
    k->say(report, first, &texts);
    for (size_t t = 0; t < k->n; t++) {
        if (k->n > 1 && texts.text[t][0]) {
            (void)fprintf(file, "    %-7s  ", k->names[t]);
        }
        if (k->n == 1 || texts.text[t][0]) {
            write_text(file, texts.text[t], all ? 0 : differing(report, k, first, t));
        }
    }
}

static void write_kind(FILE *file, const topo_report *report, const kind *k, int all)
{
    for (size_t i = 0; i < report->n; i++) {
        if (all || !has_been(report, k, i)) {
            write_group(file, report, k, i, all);
        }
    }
}

void topo_reasons_write(FILE *file, const topo_report *report, int all)
{
    (void)fprintf(file, "\nreasons of the plan%s\n",
                  all ? "" : "; --why gives those of each rank, with its numbers for N");
    write_kind(file, report, &reasons, all);
}

void topo_bindings_write(FILE *file, const topo_report *report, int all)
{
    (void)fprintf(file, "\nwhat fsdp_init() says\n");
    write_kind(file, report, &bindings, all);
}
