#include "lib/node/window.h"

#include <sys/mman.h>
#include <unistd.h>

static const int NOTHING = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

size_t fsdpi_window_bytes(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

bool fsdpi_window_reserve(size_t bytes, fsdpi_window *window)
{
    *window = (fsdpi_window){0};
    if (bytes == 0) {
        return true;
    }
    void *base = mmap(NULL, bytes, PROT_NONE, NOTHING, -1, 0);
    if (base == MAP_FAILED) {
        return false;
    }
    *window = (fsdpi_window){.base = base, .bytes = bytes};
    return true;
}

void fsdpi_window_release(fsdpi_window *window)
{
    if (window->base != NULL) {
        (void)munmap(window->base, window->bytes);
    }
    *window = (fsdpi_window){0};
}

/* In one call: its pages are there, and reading them would be a fault for each few otherwise. */
bool fsdpi_window_open(const fsdpi_segment *segment, const unsigned char *memory, unsigned char *at, size_t bytes)
{
    return mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, segment->file - 1,
                (off_t)(memory - segment->base)) != MAP_FAILED;
}

bool fsdpi_window_shut(unsigned char *at, size_t bytes)
{
    return mmap(at, bytes, PROT_NONE, NOTHING | MAP_FIXED, -1, 0) != MAP_FAILED;
}
