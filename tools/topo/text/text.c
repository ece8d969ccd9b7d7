#include "tools/topo/text/text.h"

#include "tools/topo/base/words.h"
#include "tools/topo/report/verdict.h"
#include "tools/topo/text/matrix.h"
#include "tools/topo/text/ranks.h"

static void print_domain(FILE *file, int indent, const char *name, const fsdp_node *node, const fsdp_domain *domain)
{
    char threads[FSDP_MASK_TEXT_BYTES];

    fsdp_mask_text(&domain->threads, threads, sizeof threads);
    (void)fprintf(file, "%*s%-*s  %9s  %9s  threads %s\n", indent, "", 20 - indent, name,
                  domain->bytes > 0 ? topo_bytes(domain->bytes).text : "",
                  topo_counted(topo_count_cores(node, &domain->threads), "core").text, threads);
}

static void print_caches(FILE *file, int indent, const fsdp_node *node, int package, int numa)
{
    for (size_t i = 0; i < node->n_caches; i++) {
        if (node->caches[i].package == package && node->caches[i].numa == numa) {
            print_domain(file, indent, topo_cache(node, (int)i).text, node, &node->caches[i]);
        }
    }
}

/* NUMA nodes of a package, or those of none in particular, each with its caches; then caches that span several. */
static void print_numas(FILE *file, int indent, const fsdp_node *node, int package)
{
    char name[TOPO_WORD_BYTES + 16];

    for (size_t i = 0; i < node->n_numas; i++) {
        if (node->numas[i].package == package) {
            (void)snprintf(name, sizeof name, "NUMA node %s", topo_number(node->numas, (int)i).text);
            print_domain(file, indent, name, node, &node->numas[i]);
            print_caches(file, indent + 2, node, package, (int)i);
        }
    }
    print_caches(file, indent, node, package, -1);
}

static void print_domains(FILE *file, const fsdp_node *node)
{
    char name[TOPO_WORD_BYTES + 16];

    (void)fprintf(file, "\nmemory and cores\n");
    for (size_t i = 0; i < node->n_packages; i++) {
        (void)snprintf(name, sizeof name, "package %s", topo_number(node->packages, (int)i).text);
        print_domain(file, 2, name, node, &node->packages[i]);
        print_numas(file, 4, node, (int)i);
    }
    print_numas(file, 2, node, -1);
    if (node->cpu_quota > 0) {
        (void)fprintf(file, "  the control group allows the time of %.2f cores\n", node->cpu_quota);
    }
}

static void print_kinds(FILE *file, const fsdp_node *node)
{
    for (size_t k = 0; k < node->n_kinds; k++) {
        fsdp_mask all = {{0}};
        char      threads[FSDP_MASK_TEXT_BYTES];

        for (size_t c = 0; c < node->n_cores; c++) {
            for (size_t w = 0; w < FSDP_MASK_WORDS && node->cores[c].kind == (int)k; w++) {
                all.word[w] |= node->cores[c].threads.word[w];
            }
        }
        fsdp_mask_text(&all, threads, sizeof threads);
        (void)fprintf(file, "%s  %-31s  %9s  threads %s\n", k ? "" : "\nkinds of cores, the fastest first\n",
                      node->kinds[k].name, topo_counted(node->kinds[k].n_cores, "core").text, threads);
    }
}

static void print_memories(FILE *file, const fsdp_node *node)
{
    for (size_t i = 0; i < node->n_memories; i++) {
        const fsdp_memory_node *m = &node->memories[i];
        char                    threads[FSDP_MASK_TEXT_BYTES];

        fsdp_mask_text(&m->threads, threads, sizeof threads);
        (void)fprintf(file, "%s  NUMA node %-4d  %-10s  %9s", i ? "" : "\nmemory that nothing is planned onto\n",
                      m->number, m->kind, topo_bytes(m->bytes).text);
        if (m->numa >= 0) {
            (void)fprintf(file, "  beside NUMA node %s\n", topo_number(node->numas, m->numa).text);
        } else {
            (void)fprintf(file, "  next to threads %s\n", threads);
        }
    }
}

static void print_sources(FILE *file, const fsdp_node *node)
{
    (void)fprintf(file, "\nsources\n");
    for (int s = 0; s < FSDP_N_SOURCES; s++) {
        (void)fprintf(file, "  %-14s %-8s %s\n", fsdp_source_name((fsdp_source_kind)s),
                      node->sources[s].present ? "present" : "missing", node->sources[s].text);
    }
}

static void print_gpus(FILE *file, const fsdp_node *node)
{
    (void)fprintf(file, "\nGPUs%s\n", node->n_gpus ? "" : ": none");
    for (size_t i = 0; i < node->n_gpus; i++) {
        const fsdp_gpu *g = &node->gpus[i];
        char            threads[FSDP_MASK_TEXT_BYTES];

        fsdp_mask_text(&g->threads, threads, sizeof threads);
        (void)fprintf(file, "  %-22s  %s %04x  NUMA node %s  threads %s", topo_gpu(node, (int)i).text, topo_vendor(g),
                      (unsigned)g->device, topo_number(node->numas, g->numa).text,
                      fsdp_mask_count(&g->threads) ? threads : "unknown");
        if (g->bytes > 0) {
            (void)fprintf(file, "  %s", topo_bytes(g->bytes).text);
        }
        if (g->smi >= 0) {
            (void)fprintf(file, "  rocm-smi %d", g->smi);
        }
        if (g->hive > 0) {
            (void)fprintf(file, "  hive %llx", (unsigned long long)g->hive);
        }
        (void)fprintf(file, "%s%s\n", g->name[0] ? "  " : "", g->name);
    }
}

static void print_nics(FILE *file, const fsdp_node *node)
{
    (void)fprintf(file, "\nnetwork cards%s\n", node->n_nics ? "" : ": none");
    for (size_t i = 0; i < node->n_nics; i++) {
        const fsdp_nic *nic = &node->nics[i];

        (void)fprintf(file, "  %-12s %-14s NUMA node %s%s\n", nic->name, nic->address,
                      topo_number(node->numas, nic->numa).text, nic->fabric ? "  fabric" : "");
    }
}

static void write_all(FILE *file, const topo_report *report, size_t index, int all_reasons)
{
    const fsdp_node *node = report->node;
    char             verdict[TOPO_VERDICT_BYTES];

    (void)fputs(index > 0 ? "\n" : "", file);
    if (report->n > 0) {
        topo_verdict(report, verdict, sizeof verdict);
        (void)fprintf(file, "%s\n\n", verdict);
    }
    (void)fprintf(file, "node %s: %s, %s, %s, %s, %s, %s, %s\n",
                  report->host[0] ? report->host : "of a record without a name",
                  topo_counted(node->n_packages, "package").text, topo_counted(node->n_numas, "NUMA node").text,
                  topo_counted(node->n_caches, "last-level cache").text, topo_counted(node->n_cores, "core").text,
                  topo_counted((size_t)fsdp_mask_count(&node->threads), "hardware thread").text,
                  topo_counted(node->n_gpus, "GPU").text, topo_counted(node->n_nics, "network card").text);
    print_sources(file, node);
    print_domains(file, node);
    print_memories(file, node);
    print_kinds(file, node);
    print_gpus(file, node);
    print_nics(file, node);
    topo_matrix_write(file, node);
    if (report->n > 0) {
        topo_text_ranks(file, report, all_reasons);
    }
}

void topo_text_write(FILE *file, const topo_report *report, size_t index)
{
    write_all(file, report, index, 0);
}

void topo_text_write_why(FILE *file, const topo_report *report, size_t index)
{
    write_all(file, report, index, 1);
}
