/* The index of several files. */
#include "shard/checkpoint/format/tensor_files.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t        n;
    fsdpi_problem problem;

    if (fsdpi_tensor_index_check("input", (const char *)data, bytes, &n, &problem) == FSDP_OK) {
        MUST(n <= bytes / 6);
    }
    return 0;
}
