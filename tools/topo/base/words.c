#include "tools/topo/base/words.h"

#include <stdarg.h>
#include <string.h>

void topo_line_add(topo_line *line, const char *format, ...)
{
    va_list arguments;
    int     n;

    va_start(arguments, format);
    n = vsnprintf(line->text + line->used, line->size - line->used, format, arguments);
    va_end(arguments);
    if (n > 0) {
        line->used = line->used + (size_t)n < line->size ? line->used + (size_t)n : line->size - 1;
    }
}

void topo_deviation_names(unsigned deviations, char *text, size_t size)
{
    topo_line line = {text, size, 0};

    text[0] = 0;
    for (unsigned bit = 1; deviations; bit <<= 1) {
        if (deviations & bit) {
            topo_line_add(&line, "%s%s", line.used ? ", " : "", fsdp_deviation_name((fsdp_deviation)bit));
            deviations &= ~bit;
        }
    }
}

topo_word topo_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    topo_word                word;
    double                   value = (double)bytes;
    size_t                   unit  = 0;

    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    if (bytes == 0) {
        (void)snprintf(word.text, sizeof word.text, "unknown");
    } else {
        (void)snprintf(word.text, sizeof word.text, "%.*f %s", value < 10 && unit > 0 ? 1 : 0, value, units[unit]);
    }
    return word;
}

topo_word topo_counted(size_t n, const char *singular)
{
    topo_word word;

    (void)snprintf(word.text, sizeof word.text, "%zu %s%s", n, singular, n == 1 ? "" : "s");
    return word;
}

topo_word topo_gpu(const fsdp_node *node, int gpu)
{
    topo_word word = {"none"};

    if (gpu >= 0) {
        const fsdp_gpu *g = &node->gpus[gpu];

        (void)snprintf(word.text, sizeof word.text, "GPU %d %s", gpu, g->address);
        if (g->ordinal > 0) {
            (void)snprintf(word.text + strlen(word.text), sizeof word.text - strlen(word.text), "/%d", g->ordinal);
        }
    }
    return word;
}

topo_word topo_number(const fsdp_domain *domains, int index)
{
    topo_word word = {"unknown"};

    if (index >= 0) {
        (void)snprintf(word.text, sizeof word.text, "%d", domains[index].number >= 0 ? domains[index].number : index);
    }
    return word;
}

topo_word topo_cache(const fsdp_node *node, int cache)
{
    const int level = node->caches[cache].level;
    topo_word word;

    if (level > 0) {
        (void)snprintf(word.text, sizeof word.text, "L%d %d", level, cache);
    } else {
        (void)snprintf(word.text, sizeof word.text, "cache %d", cache);
    }
    return word;
}

void topo_shell_word(FILE *file, const char *text)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-./:,+@%";

    if (text[0] && !text[strspn(text, plain)]) {
        (void)fputs(text, file);
        return;
    }
    (void)fputc('\'', file);
    for (; *text; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", file);
        } else {
            (void)fputc(*text, file);
        }
    }
    (void)fputc('\'', file);
}

const char *topo_vendor(const fsdp_gpu *gpu)
{
    return gpu->vendor == 0x1002 ? "AMD" : gpu->vendor == 0x10de ? "NVIDIA" : "unknown vendor";
}

const char *topo_link_name(fsdp_link_type type)
{
    switch (type) {
    case FSDP_LINK_PCIE:
        return "PCIe";
    case FSDP_LINK_XGMI:
        return "XGMI";
    case FSDP_LINK_NVLINK:
        return "NVLink";
    case FSDP_LINK_UNKNOWN:
        break;
    }
    return "unknown";
}

topo_word topo_link(const fsdp_link *link)
{
    topo_word word = {""};
    topo_line line = {word.text, sizeof word.text, 0};

    topo_line_add(&line, "%s", topo_link_name(link->type));
    if (link->hops > 0) {
        topo_line_add(&line, ", %llu hop%s", (unsigned long long)link->hops, link->hops == 1 ? "" : "s");
    }
    if (link->weight > 0) {
        topo_line_add(&line, ", weight %llu", (unsigned long long)link->weight);
    }
    if (link->min_bandwidth > 0 && link->min_bandwidth != link->max_bandwidth) {
        topo_line_add(&line, ", %llu to %llu MB/s", (unsigned long long)link->min_bandwidth,
                      (unsigned long long)link->max_bandwidth);
    } else if (link->max_bandwidth > 0) {
        topo_line_add(&line, ", %llu MB/s", (unsigned long long)link->max_bandwidth);
    }
    return word;
}
