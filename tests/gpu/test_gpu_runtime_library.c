/*
 * HIP looked up while a program runs: `there`, with the double's library on the path, and `missing`, with none. Each is a
 * process of its own, since a library is looked up once.
 */
#include "tests/support/unit_test.h"

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/gpu.h"
#include "tests/doubles/hip/registered.h"

#define LIBRARY "libamdhip64.so.5"

/* As constructors do that the compiler makes. */
static void register_kernels(void)
{
    void **first  = __hipRegisterFatBinary("one");
    void **second = __hipRegisterFatBinary("two");

    __hipRegisterFunction(first, "host", (char[]){"device"}, "a", 7, NULL, NULL, NULL, NULL, NULL);
    __hipRegisterFunction(second, "host", (char[]){"device"}, "b", 7, NULL, NULL, NULL, NULL, NULL);
}

/* NULL as long as nobody has loaded it. */
static const char *written_by_double(void)
{
    void *library                = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    const char *(*written)(void) = NULL;

    if (library == NULL) {
        return NULL;
    }
    *(void **)(void *)&written = dlsym(library, "hip_double_written");
    assert_non_null(written);
    return written();
}

static void it_is_loaded_by_the_first_call(void **state)
{
    (void)state;
    assert_null(written_by_double());
    assert_int_equal(2, fsdpi_gpu_count());
    assert_true(fsdpi_gpu_has_runtime());
    assert_string_equal("the runtime finds no GPU", fsdpi_gpu_missing());
    assert_non_null(written_by_double());
}

static void kernels_are_registered_with_it(void **state)
{
    (void)state;
    assert_string_equal("code two; function b; code one; function a; ", written_by_double());
    assert_int_equal(hipSuccess, hipLaunchKernel("c", (dim3){2, 1, 1}, (dim3){1, 3, 1}, NULL, 5, NULL));
    assert_non_null(strstr(written_by_double(), "launch c; "));
}

static void calls_and_errors_go_through(void **state)
{
    int32_t there = 7, back = 0;
    void   *memory;

    (void)state;
    assert_int_equal(hipSuccess, hipMalloc(&memory, sizeof there));
    assert_true(fsdpi_is_gpu_memory(memory));
    assert_int_equal(hipSuccess, hipMemcpyAsync(memory, &there, sizeof there, hipMemcpyDefault, NULL));
    assert_int_equal(hipSuccess, hipMemcpyAsync(&back, memory, sizeof back, hipMemcpyDefault, NULL));
    assert_int_equal(hipSuccess, hipDeviceSynchronize());
    assert_int_equal(7, back);
    assert_int_equal(hipSuccess, hipFree(memory));
    assert_int_equal(hipErrorInvalidDevice, hipSetDevice(99));
    assert_true(strlen(hipGetErrorString(hipErrorInvalidDevice)) > 0);
}

static void a_function_that_it_lacks_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(hipErrorSharedObjectSymbolNotFound, __hipPopCallConfiguration(NULL, NULL, NULL, NULL));
}

static void without_it_there_is_no_gpu(void **state)
{
    (void)state;
    if (dlopen(LIBRARY, RTLD_LAZY) != NULL) {
        print_message("skipped: " LIBRARY " is installed\n");
        exit(77);
    }
    assert_int_equal(0, fsdpi_gpu_count());
    assert_false(fsdpi_gpu_has_runtime());
    assert_int_equal(-1, fsdpi_gpu_selected());
    assert_non_null(strstr(fsdpi_gpu_missing(), LIBRARY));
    assert_string_equal("no GPU runtime", hipGetErrorName(hipErrorInvalidDevice));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest there[] = {
        cmocka_unit_test(it_is_loaded_by_the_first_call),
        cmocka_unit_test(kernels_are_registered_with_it),
        cmocka_unit_test(calls_and_errors_go_through),
        cmocka_unit_test(a_function_that_it_lacks_is_an_error),
    };
    const struct CMUnitTest missing[] = {cmocka_unit_test(without_it_there_is_no_gpu)};

    register_kernels();
    return argc > 1 && strcmp(argv[1], "missing") == 0 ? cmocka_run_group_tests(missing, NULL, NULL)
                                                       : cmocka_run_group_tests(there, NULL, NULL);
}
