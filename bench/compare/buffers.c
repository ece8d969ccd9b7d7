#include "bench/compare/buffers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILL_BYTE  0x3C /* a normal number in every type, which denormal ones of other bytes would not be */
#define LINE_BYTES 64

/* Whether shared memory that asks for huge pages gets them: then private memory asks too, and both have them. */
static int shared_memory_has_huge_pages(void)
{
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
    char  line[200];
    int   yes = 0;

    if (!file) {
        return 0;
    }
    if (fgets(line, sizeof line, file)) {
        yes = strstr(line, "[always]") || strstr(line, "[within_size]") || strstr(line, "[advise]");
    }
    (void)fclose(file);
    return yes;
}

static void advise_huge_pages(void *memory, size_t bytes)
{
    const uintptr_t page  = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
    const uintptr_t end   = ((uintptr_t)memory + bytes) / page * page;

    if (end > first && shared_memory_has_huge_pages()) {
        (void)madvise((char *)memory + (first - (uintptr_t)memory), end - first, MADV_HUGEPAGE);
    }
}

static fsdp_status check_there(const bench_buffers *b, const bench_world *world, const char *kind, const void *memory)
{
    char line[120];

    (void)snprintf(line, sizeof line, "no %smemory for %zu bytes on every rank; use a smaller --end", kind, b->bytes);
    return bench_agree(world, memory != NULL, line);
}

static fsdp_status allocate(bench_buffers *b, const bench_world *world, void **memory, void **host)
{
    if (b->memory == BENCH_MEMORY_SYMMETRIC) {
        BENCH_TRY(fsdp_buffer_alloc(b->ctx, FSDP_BUFFER_PER_RANK, b->bytes, memory));
    } else {
        *memory = malloc(b->bytes);
        BENCH_TRY(check_there(b, world, "", *memory));
        advise_huge_pages(*memory, b->bytes);
    }
    memset(*memory, FILL_BYTE, b->bytes);
    *host = *memory;
    return FSDP_OK;
}

static fsdp_status allocate_on_gpu(bench_buffers *b, const bench_world *world, void **memory, void **host)
{
    if (b->memory == BENCH_MEMORY_SYMMETRIC) {
        BENCH_TRY(fsdp_buffer_alloc(b->ctx, FSDP_BUFFER_DEVICE, b->bytes, memory));
    } else {
        *memory = bench_gpu_alloc(b->gpu, b->bytes);
        BENCH_TRY(check_there(b, world, "device ", *memory));
    }
    *host = bench_gpu_alloc_pinned(b->gpu, b->bytes);
    BENCH_TRY(check_there(b, world, "pinned ", *host));
    memset(*host, FILL_BYTE, b->bytes);
    bench_gpu_copy(b->gpu, *memory, *host, b->bytes);
    return FSDP_OK;
}

fsdp_status bench_buffers_open(bench_buffers *buffers, const bench_world *world, bench_gpu *gpu, int memory, int shared,
                               size_t bytes)
{
    fsdp_status (*const make)(bench_buffers *, const bench_world *, void **, void **) =
        gpu ? allocate_on_gpu : allocate;

    *buffers = (bench_buffers){.ctx = world->ctx, .gpu = gpu, .memory = memory, .bytes = bytes};
    BENCH_TRY(make(buffers, world, &buffers->in, &buffers->host_in));
    BENCH_TRY(make(buffers, world, &buffers->out, &buffers->host_out));
    if (!shared) {
        return FSDP_OK;
    }
    BENCH_TRY(fsdp_buffer_alloc(world->ctx, FSDP_BUFFER_PER_NODE, bytes, &buffers->node_out));
    if (fsdp_node_rank(world->ctx) == 0) {
        memset(buffers->node_out, FILL_BYTE, bytes);
    }
    return FSDP_OK;
}

static fsdp_status release(bench_buffers *b, void *memory, void *host)
{
    if (b->gpu && host) {
        bench_gpu_free_pinned(b->gpu, host);
    }
    if (b->memory == BENCH_MEMORY_SYMMETRIC) {
        return memory ? fsdp_buffer_free(b->ctx, memory) : FSDP_OK;
    }
    if (!b->gpu) {
        free(memory);
    } else if (memory) {
        bench_gpu_free(b->gpu, memory);
    }
    return FSDP_OK;
}

fsdp_status bench_buffers_close(bench_buffers *buffers)
{
    fsdp_status node, out, in;

    bench_gpu_finish(buffers->gpu);
    node     = buffers->node_out ? fsdp_buffer_free(buffers->ctx, buffers->node_out) : FSDP_OK;
    out      = release(buffers, buffers->out, buffers->host_out);
    in       = release(buffers, buffers->in, buffers->host_in);
    *buffers = (bench_buffers){0};
    return node != FSDP_OK ? node : out != FSDP_OK ? out : in;
}

static void *behind(void *memory, size_t bytes)
{
    return memory ? (char *)memory + bytes : NULL;
}

bench_buffers bench_buffers_turn(const bench_buffers *buffers, const bench_case *c, size_t turn)
{
    const size_t  stride = (c->bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    const size_t  parts  = buffers->bytes / stride;
    const size_t  offset = parts > 1 ? turn % parts * stride : 0;
    bench_buffers part   = *buffers;

    part.bytes    = parts > 1 ? stride : buffers->bytes;
    part.in       = behind(buffers->in, offset);
    part.out      = behind(buffers->out, offset);
    part.node_out = behind(buffers->node_out, offset);
    part.host_in  = behind(buffers->host_in, offset);
    part.host_out = behind(buffers->host_out, offset);
    return part;
}

void *bench_buffers_result(const bench_buffers *buffers, const bench_case *c)
{
    return c->shared ? buffers->node_out : buffers->out;
}

void *bench_buffers_host_result(const bench_buffers *buffers, const bench_case *c)
{
    return c->shared ? buffers->node_out : buffers->host_out;
}

/* Where on the GPU a place in `host_in` or `host_out` belongs. */
static char *on_gpu(const bench_buffers *b, const void *host)
{
    const uintptr_t place = (uintptr_t)host, in = (uintptr_t)b->host_in;
    const int       is_in = place >= in && place - in < b->bytes;

    return is_in ? (char *)b->in + (place - in) : (char *)b->out + (place - (uintptr_t)b->host_out);
}

void bench_buffers_send(const bench_buffers *buffers, const void *host, size_t bytes)
{
    if (buffers->gpu) {
        bench_gpu_copy(buffers->gpu, on_gpu(buffers, host), host, bytes);
    }
}

void bench_buffers_fetch(const bench_buffers *buffers, void *host, size_t bytes)
{
    if (buffers->gpu) {
        bench_gpu_copy(buffers->gpu, host, on_gpu(buffers, host), bytes);
        bench_gpu_finish(buffers->gpu);
    }
}

/* One mapping of /proc/self/smaps. */
typedef struct mapping {
    int           found, shared;
    unsigned long page_kib, rss_kib, huge_kib;
} mapping;

static void read_smaps_line(const char *line, uintptr_t address, mapping *m, int *inside)
{
    unsigned long begin, end, kib;
    char          access[8], name[40];

    if (sscanf(line, "%lx-%lx %7s", &begin, &end, access) == 3) {
        *inside = address >= begin && address < end;
        if (*inside) {
            m->found  = 1;
            m->shared = access[3] == 's';
        }
        return;
    }
    if (!*inside || sscanf(line, "%39[^:]: %lu kB", name, &kib) != 2) {
        return;
    }
    if (strcmp(name, "KernelPageSize") == 0) {
        m->page_kib = kib;
    } else if (strcmp(name, "Rss") == 0) {
        m->rss_kib = kib;
    } else if (strcmp(name, "AnonHugePages") == 0 || strcmp(name, "ShmemPmdMapped") == 0 ||
               strcmp(name, "FilePmdMapped") == 0) {
        m->huge_kib += kib;
    }
}

static mapping find_mapping(const void *memory)
{
    mapping m      = {0};
    FILE   *file   = fopen("/proc/self/smaps", "re");
    int     inside = 0;
    char    line[512];

    while (file && fgets(line, sizeof line, file)) {
        read_smaps_line(line, (uintptr_t)memory, &m, &inside);
    }
    if (file) {
        (void)fclose(file);
    }
    return m;
}

void bench_describe_pages(const void *memory, char *text, size_t text_bytes)
{
    const mapping m    = find_mapping(memory);
    const char   *kind = m.shared ? "shared" : "private";

    if (!m.found) {
        (void)snprintf(text, text_bytes, "unknown");
    } else if (m.huge_kib > 0 && m.rss_kib > 0) {
        (void)snprintf(text, text_bytes, "huge ones hold %.0f%%, else %lu KiB, %s memory",
                       100.0 * (double)m.huge_kib / (double)m.rss_kib, m.page_kib, kind);
    } else {
        (void)snprintf(text, text_bytes, "%lu KiB, %s memory", m.page_kib, kind);
    }
}
