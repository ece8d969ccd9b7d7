#include "kernel_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/host/element.h"
#ifdef KERNEL_TEST_GPU
#include "tests/gpu/gpu_table.h"
#endif

enum { FENCE_BYTE = 0xa5, FENCE = 128 };

static struct array {
    char  *memory;
    char  *data;
    size_t bytes;
    size_t fence_behind;
} arrays[MAX_ARRAYS];

const fsdpi_kernels *tables_under_test[4];

#ifdef KERNEL_TEST_GPU
enum { ANY_ADDRESS = 0 };

void choose_tables(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    tables_under_test[0] = &gpu_table;
}
#else
enum { ANY_ADDRESS = 1 };

void choose_tables(int argc, char **argv)
{
    static const char *const names[] = {"avx2", "avx512", "neon"};
    size_t                   n       = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const fsdpi_kernels *kernels = fsdpi_kernels_find(names[i]);

        if (argc > 1 && strcmp(argv[1], names[i]) != 0) {
            continue;
        }
        if (kernels == NULL) {
            print_message("no %s here: only the reference and the other tables are tested\n", names[i]);
        } else {
            tables_under_test[n++] = kernels;
        }
    }
    tables_under_test[n] = NULL;
}
#endif

static void fill_fences(const struct array *array)
{
    memset(array->data - FENCE, FENCE_BYTE, FENCE);
    memset(array->data + array->bytes, FENCE_BYTE, array->fence_behind);
}

void *fenced_array(size_t number, size_t bytes, ptrdiff_t offset)
{
    struct array *array  = &arrays[number];
    size_t        usable = 2 * MAX_ARRAY_BYTES;

    assert_in_range(number, 0, MAX_ARRAYS - 1);
    assert_in_range(bytes, 0, MAX_ARRAY_BYTES);
    if (array->memory == NULL) {
        array->memory = mmap(NULL, 3 * MAX_ARRAY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(array->memory, MAP_FAILED);
        assert_int_equal(0, mprotect(array->memory + usable, MAX_ARRAY_BYTES, PROT_NONE));
    }
    array->data         = offset == AT_END ? array->memory + usable - bytes : array->memory + FENCE + offset;
    array->bytes        = bytes;
    array->fence_behind = offset == AT_END ? 0 : FENCE;
    fill_fences(array);
    return array->data;
}

static void assert_fence_stands(const char *fence, size_t bytes, const char *where)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)fence[i] != FENCE_BYTE) {
            fail_msg("byte %zu of the fence %s an array has changed", i, where);
        }
    }
}

void assert_fences_stand(void)
{
    for (const struct array *array = arrays; array < arrays + MAX_ARRAYS; array++) {
        if (array->data == NULL) {
            continue;
        }
        assert_fence_stands(array->data - FENCE, FENCE, "before");
        assert_fence_stands(array->data + array->bytes, array->fence_behind, "behind");
    }
}

uint64_t random_bits(void)
{
    static uint64_t state = 1;
    uint64_t        z     = state += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Bits of, without sign: 0, 1, smallest subnormal, largest subnormal, smallest normal, largest, infinity, quiet NaN,
 * signaling NaN, a NaN with a long payload, 3, and 1 with its last bit set. */
static const uint64_t special_f64[] = {
    0,
    0x3ff0000000000000,
    1,
    0x000fffffffffffff,
    0x0010000000000000,
    0x7fefffffffffffff,
    0x7ff0000000000000,
    0x7ff8000000000000,
    0x7ff0000000000001,
    0x7ff5555555555555,
    0x4008000000000000,
    0x3ff0000000000001,
};
static const uint32_t special_f32[]     = {0,          0x3f800000, 1,          0x007fffff, 0x00800000, 0x7f7fffff,
                                           0x7f800000, 0x7fc00000, 0x7f800001, 0x7fd55555, 0x40400000, 0x3f800001};
static const uint16_t special_bf16[]    = {0,      0x3f80, 1,      0x007f, 0x0080, 0x7f7f,
                                           0x7f80, 0x7fc0, 0x7f81, 0x7fd5, 0x4040, 0x3f81};
static const uint16_t special_f16[]     = {0,      0x3c00, 1,      0x03ff, 0x0400, 0x7bff,
                                           0x7c00, 0x7e00, 0x7c01, 0x7f55, 0x4200, 0x3c01};
static const uint64_t special_integer[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0x7fffffffffffffff, 2, 3};

static uint64_t special_bits(fsdp_dtype dtype)
{
    uint64_t random = random_bits(), sign = random >> 63;
    size_t   i = (size_t)random % 12;

    switch (dtype) {
    case FSDP_F64:
        return special_f64[i] | sign << 63;
    case FSDP_F32:
        return special_f32[i] | sign << 31;
    case FSDP_BF16:
        return special_bf16[i] | sign << 15;
    case FSDP_F16:
        return special_f16[i] | sign << 15;
    case FSDP_I64:
    case FSDP_I32:
    case FSDP_U8:
        break;
    }
    return sign != 0 ? ~special_integer[i % 10] : special_integer[i % 10];
}

static void store_bits(void *x, size_t i, fsdp_dtype dtype, uint64_t bits)
{
    const size_t bytes = element_bytes(dtype);

    memcpy((char *)x + i * bytes, &bits, bytes); /* the low bytes come first */
}

static uint64_t load_bits(const void *x, size_t i, fsdp_dtype dtype)
{
    const size_t bytes = element_bytes(dtype);
    uint64_t     bits  = 0;

    memcpy(&bits, (const char *)x + i * bytes, bytes);
    return bits;
}

void fill_with_any_values(void *x, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        store_bits(x, i, dtype, random_bits() % 4 == 0 ? special_bits(dtype) : random_bits());
    }
}

static int is_nan(uint64_t bits, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case FSDP_F32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case FSDP_BF16:
        return (bits & 0x7fff) > 0x7f80;
    case FSDP_F16:
        return (bits & 0x7fff) > 0x7c00;
    case FSDP_I64:
    case FSDP_I32:
    case FSDP_U8:
        break;
    }
    return 0;
}

void assert_same_or_both_nan(const void *expected, const void *found, size_t count, fsdp_dtype dtype, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t a = load_bits(expected, i, dtype), b = load_bits(found, i, dtype);

        if (a != b && !(is_nan(a, dtype) && is_nan(b, dtype))) {
            fail_msg("%s: element %zu of %zu is 0x%llx instead of 0x%llx", what, i, count, (unsigned long long)b,
                     (unsigned long long)a);
        }
    }
}

size_t element_bytes(fsdp_dtype dtype)
{
    return fsdpi_element_bytes(dtype);
}

const size_t *units_of(fsdp_dtype dtype)
{
    static size_t units[3];

    units[0] = element_bytes(dtype);
    units[1] = ANY_ADDRESS;
    return units;
}

#define TEN_FROM(n) (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7, (n) + 8, (n) + 9
const size_t tail_counts[] = {TEN_FROM(0),   TEN_FROM(10),  TEN_FROM(20),  TEN_FROM(30), TEN_FROM(40),
                              TEN_FROM(50),  TEN_FROM(60),  TEN_FROM(70),  TEN_FROM(80), TEN_FROM(90),
                              TEN_FROM(100), TEN_FROM(110), TEN_FROM(120), 130,          257,
                              521,           1031,          2053,          SIZE_MAX};

const fsdp_dtype floats[N_FLOATS] = {FSDP_F64, FSDP_F32, FSDP_BF16, FSDP_F16};

static void assert_in_place(const fsdpi_kernels *kernels, in_place_kernel_of kernel_of, fsdp_dtype dtype, size_t count,
                            ptrdiff_t offset, double value)
{
    enum { X, EXPECTED };
    const size_t bytes    = count * element_bytes(dtype);
    void        *x        = fenced_array(X, bytes, offset);
    void        *expected = fenced_array(EXPECTED, bytes, 0);

    fill_with_any_values(x, count, dtype);
    if (bytes > 0) {
        memcpy(expected, x, bytes);
    }
    kernel_of (&fsdpi_kernels_scalar)(expected, value, count, dtype);
    kernel_of(kernels)(x, value, count, dtype);
    assert_same_or_both_nan(expected, x, count, dtype, kernels->name);
    assert_fences_stand();
}

void assert_in_place_for_tails(in_place_kernel_of kernel_of, const double *values, size_t n)
{
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t d = 0; d < N_FLOATS; d++) {
            for (size_t v = 0; v < n; v++) {
                for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
                    assert_in_place(tables_under_test[t], kernel_of, floats[d], *count, 0, values[v]);
                }
            }
        }
    }
}

void assert_in_place_anywhere(in_place_kernel_of kernel_of)
{
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t d = 0; d < N_FLOATS; d++) {
            for (const size_t *unit = units_of(floats[d]); *unit != 0; unit++) {
                for (size_t offset = 0; offset <= 16; offset++) {
                    assert_in_place(tables_under_test[t], kernel_of, floats[d], 83, (ptrdiff_t)(offset * *unit), 0.3);
                }
            }
            for (size_t count = 0; count <= 70; count++) {
                assert_in_place(tables_under_test[t], kernel_of, floats[d], count, AT_END, 0.3);
            }
        }
    }
}
