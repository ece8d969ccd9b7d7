#include "tools/topo/text/json.h"

#include "tools/common/json.h"
#include "tools/topo/base/words.h"
#include "tools/topo/report/verdict.h"

static void write_pair(FILE *file, const char *name, const char *text)
{
    (void)fprintf(file, "\"%s\": ", name);
    cli_json_text(file, text);
}

/* As a list of hardware threads; long ones are cut nowhere. */
static void write_mask(FILE *file, const char *name, const fsdp_mask *mask)
{
    char text[FSDP_MASK_WORDS * 64 * 5];

    fsdp_mask_text(mask, text, sizeof text);
    (void)fprintf(file, "\"%s\": \"%s\"", name, fsdp_mask_count(mask) ? text : "");
}

/* An index; null where it is not known. */
static void write_index(FILE *file, const char *name, int index)
{
    if (index >= 0) {
        (void)fprintf(file, "\"%s\": %d", name, index);
    } else {
        (void)fprintf(file, "\"%s\": null", name);
    }
}

static void write_amount(FILE *file, const char *name, uint64_t amount)
{
    if (amount > 0) {
        (void)fprintf(file, "\"%s\": %llu", name, (unsigned long long)amount);
    } else {
        (void)fprintf(file, "\"%s\": null", name);
    }
}

static void write_domains(FILE *file, const char *name, const fsdp_domain *domains, size_t n)
{
    (void)fprintf(file, "   \"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        (void)fputs(i ? ",\n    {" : "\n    {", file);
        write_index(file, "number", domains[i].number);
        (void)fputs(", ", file);
        write_mask(file, "threads", &domains[i].threads);
        (void)fputs(", ", file);
        write_amount(file, "bytes", domains[i].bytes);
        (void)fputs(", ", file);
        write_index(file, "package", domains[i].package);
        (void)fputs(", ", file);
        write_index(file, "numa", domains[i].numa);
        (void)fputs(", ", file);
        write_index(file, "cache", domains[i].cache);
        (void)fputs(", ", file);
        write_amount(file, "level", (uint64_t)domains[i].level);
        (void)fprintf(file, ", \"kind\": %d", domains[i].kind);
        (void)fputc('}', file);
    }
    (void)fputs("],\n", file);
}

static void write_kinds(FILE *file, const fsdp_node *node)
{
    (void)fputs("   \"core_kinds\": [", file);
    for (size_t i = 0; i < node->n_kinds; i++) {
        (void)fputs(i ? ",\n    {" : "\n    {", file);
        write_pair(file, "name", node->kinds[i].name);
        (void)fprintf(file, ", \"cores\": %zu}", node->kinds[i].n_cores);
    }
    (void)fputs("],\n", file);
}

static void write_memories(FILE *file, const fsdp_node *node)
{
    (void)fputs("   \"memories\": [", file);
    for (size_t i = 0; i < node->n_memories; i++) {
        (void)fprintf(file, "%s{\"number\": %d, ", i ? ",\n    " : "\n    ", node->memories[i].number);
        write_pair(file, "kind", node->memories[i].kind);
        (void)fputs(", ", file);
        write_amount(file, "bytes", node->memories[i].bytes);
        (void)fputs(", ", file);
        write_mask(file, "threads", &node->memories[i].threads);
        (void)fputs(", ", file);
        write_index(file, "numa", node->memories[i].numa);
        (void)fputc('}', file);
    }
    (void)fputs("],\n", file);
}

static void write_gpus(FILE *file, const fsdp_node *node)
{
    (void)fputs("   \"gpus\": [", file);
    for (size_t i = 0; i < node->n_gpus; i++) {
        const fsdp_gpu *g = &node->gpus[i];

        (void)fputs(i ? ",\n    {" : "\n    {", file);
        write_pair(file, "address", g->address);
        (void)fprintf(file, ", \"ordinal\": %d, \"vendor\": \"%04x\", \"device\": \"%04x\", ", g->ordinal,
                      (unsigned)g->vendor, (unsigned)g->device);
        write_pair(file, "name", g->name);
        (void)fputs(", ", file);
        write_pair(file, "uuid", g->uuid);
        (void)fputs(", ", file);
        write_mask(file, "threads", &g->threads);
        (void)fputs(", ", file);
        write_index(file, "package", g->package);
        (void)fputs(", ", file);
        write_index(file, "numa", g->numa);
        (void)fputs(", ", file);
        write_index(file, "rocm_smi", g->smi);
        (void)fputs(", ", file);
        write_amount(file, "bytes", g->bytes);
        (void)fputs(", ", file);
        write_amount(file, "hive", g->hive);
        (void)fputc('}', file);
    }
    (void)fputs("],\n", file);
}

static void write_links(FILE *file, const fsdp_node *node)
{
    const char *between = "\n    ";

    (void)fputs("   \"links\": [", file);
    for (size_t i = 0; i < node->n_gpus * node->n_gpus; i++) {
        const fsdp_link *link = &node->links[i];

        if (i / node->n_gpus == i % node->n_gpus || link->type == FSDP_LINK_UNKNOWN) {
            continue;
        }
        (void)fprintf(file, "%s{\"from\": %zu, \"to\": %zu, \"type\": \"%s\", ", between, i / node->n_gpus,
                      i % node->n_gpus, topo_link_name(link->type));
        write_amount(file, "hops", link->hops);
        (void)fputs(", ", file);
        write_amount(file, "weight", link->weight);
        (void)fputs(", ", file);
        write_amount(file, "min_bandwidth_mb_s", link->min_bandwidth);
        (void)fputs(", ", file);
        write_amount(file, "max_bandwidth_mb_s", link->max_bandwidth);
        (void)fputc('}', file);
        between = ",\n    ";
    }
    (void)fputs("],\n", file);
}

static void write_nics(FILE *file, const fsdp_node *node)
{
    (void)fputs("   \"network_cards\": [", file);
    for (size_t i = 0; i < node->n_nics; i++) {
        (void)fputs(i ? ",\n    {" : "\n    {", file);
        write_pair(file, "name", node->nics[i].name);
        (void)fputs(", ", file);
        write_pair(file, "address", node->nics[i].address);
        (void)fprintf(file, ", \"fabric\": %s, ", node->nics[i].fabric ? "true" : "false");
        write_mask(file, "threads", &node->nics[i].threads);
        (void)fputs(", ", file);
        write_index(file, "package", node->nics[i].package);
        (void)fputs(", ", file);
        write_index(file, "numa", node->nics[i].numa);
        (void)fputc('}', file);
    }
    (void)fputs("],\n", file);
}

static void write_sources(FILE *file, const fsdp_node *node)
{
    (void)fputs("   \"sources\": [", file);
    for (int s = 0; s < FSDP_N_SOURCES; s++) {
        (void)fputs(s ? ",\n    {" : "\n    {", file);
        write_pair(file, "name", fsdp_source_name((fsdp_source_kind)s));
        (void)fprintf(file, ", \"present\": %s, ", node->sources[s].present ? "true" : "false");
        write_pair(file, "text", node->sources[s].text);
        (void)fputc('}', file);
    }
    (void)fputs("],\n", file);
}

static void write_deviations(FILE *file, unsigned deviations)
{
    const char *between = "";

    (void)fputs("\"problems\": [", file);
    for (unsigned bit = 1; deviations; bit <<= 1) {
        if (deviations & bit) {
            (void)fprintf(file, "%s\"%s\"", between, fsdp_deviation_name((fsdp_deviation)bit));
            between = ", ";
            deviations &= ~bit;
        }
    }
    (void)fputc(']', file);
}

static void write_place(FILE *file, const char *name, const fsdp_node *node, const fsdp_place *p, int with_reasons)
{
    (void)fprintf(file, ",\n     \"%s\": {", name);
    write_index(file, "gpu", p->gpu);
    (void)fputs(", ", file);
    write_pair(file, "address", p->gpu >= 0 ? node->gpus[p->gpu].address : "");
    (void)fputs(", ", file);
    write_index(file, "device", p->device);
    (void)fputs(", ", file);
    write_mask(file, "threads", &p->threads);
    (void)fputs(", ", file);
    write_index(file, "numa", p->numa);
    (void)fputs(", ", file);
    write_index(file, "network_card", p->nic);
    (void)fputs(", ", file);
    write_index(file, "spare_thread", p->spare);
    (void)fputs(", ", file);
    write_deviations(file, p->deviations);
    if (with_reasons) {
        (void)fputs(",\n      \"reasons\": {", file);
        write_pair(file, "gpu", p->gpu_reason);
        (void)fputs(", ", file);
        write_pair(file, "cores", p->cores_reason);
        (void)fputs(", ", file);
        write_pair(file, "memory", p->memory_reason);
        (void)fputs(", ", file);
        write_pair(file, "network", p->nic_reason);
        (void)fputc('}', file);
    }
    (void)fputc('}', file);
}

static void write_ranks(FILE *file, const topo_report *report)
{
    (void)fputs("   \"ranks\": [", file);
    for (size_t i = 0; i < report->n; i++) {
        (void)fprintf(file, "%s{\"rank\": %d, ", i ? ",\n    " : "\n    ", report->ranks[i].before.rank);
        write_mask(file, "launcher_threads", &report->ranks[i].before.threads);
        if (report->real) {
            (void)fputs(", ", file);
            write_pair(file, "binding", report->ranks[i].binding);
            write_place(file, "real", report->node, &report->real[i], 0);
        }
        write_place(file, "plan", report->node, &report->plan[i], 1);
        (void)fputc('}', file);
    }
    (void)fputs("]}", file);
}

void topo_json_write(FILE *file, const topo_report *report, size_t index)
{
    const fsdp_node *node = report->node;
    char             verdict[TOPO_VERDICT_BYTES];

    (void)fputs(index > 0 ? ",\n  {" : "\n  {", file);
    write_pair(file, "host", report->host);
    if (report->n > 0) {
        topo_verdict(report, verdict, sizeof verdict);
        (void)fputs(", ", file);
        write_pair(file, "verdict", verdict);
    }
    (void)fprintf(file, ", \"recorded\": %s, ", node->is_here ? "false" : "true");
    write_mask(file, "threads", &node->threads);
    if (node->cpu_quota > 0) {
        (void)fprintf(file, ", \"cpu_quota\": %.3f,\n", node->cpu_quota);
    } else {
        (void)fputs(", \"cpu_quota\": null,\n", file);
    }
    write_sources(file, node);
    write_domains(file, "packages", node->packages, node->n_packages);
    write_domains(file, "numas", node->numas, node->n_numas);
    write_domains(file, "caches", node->caches, node->n_caches);
    write_domains(file, "cores", node->cores, node->n_cores);
    write_kinds(file, node);
    write_memories(file, node);
    write_gpus(file, node);
    write_links(file, node);
    write_nics(file, node);
    write_ranks(file, report);
}

void topo_json_document(FILE *file, const topo_texts *nodes)
{
    (void)fprintf(file, "{\"program\": \"fsdp-topo\", \"version\": \"%d.%d.%d\", \"nodes\": [", FSDP_VERSION_MAJOR,
                  FSDP_VERSION_MINOR, FSDP_VERSION_PATCH);
    for (size_t i = 0; i < nodes->n; i++) {
        (void)fputs(nodes->text[i], file);
    }
    (void)fputs("]}\n", file);
}
