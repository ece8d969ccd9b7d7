/* The kernels of 05_gpu_mlp, on the double of the HIP runtime, against its loops on the host. */
#include "tests/support/unit_test.h"

#include <hip/hip_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fsdp/random.h>

#include "mpi-examples/05_gpu_mlp/mlp_device.h"
#include "mpi-examples/05_gpu_mlp/mlp_kernels.h"

enum { MOST = 40, ELEMENTS = MOST * MOST };

/* An array on the host and the same on the device. */
typedef struct array {
    float  host[ELEMENTS];
    float *device;
} array;

static array a, b, out, bias, gate;

static void make(array *x, uint64_t stream)
{
    for (size_t i = 0; i < ELEMENTS; i++) {
        x->host[i] = (float)fsdp_random_normal(1, stream, i);
    }
    assert_int_equal(hipSuccess, hipMalloc((void **)&x->device, sizeof x->host));
    assert_int_equal(hipSuccess, hipMemcpyAsync(x->device, x->host, sizeof x->host, hipMemcpyDefault, NULL));
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
}

static int make_all(void **state)
{
    (void)state;
    make(&a, 1);
    make(&b, 2);
    make(&out, 3);
    make(&bias, 4);
    make(&gate, 5);
    return 0;
}

static int release_all(void **state)
{
    array *const all[] = {&a, &b, &out, &bias, &gate};

    (void)state;
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(hipSuccess, hipFree(all[i]->device));
    }
    return 0;
}

/* As the host has it, to the last bit; behind the end nothing has been written. */
static void assert_same(const array *x)
{
    static float found[ELEMENTS];

    assert_int_equal(hipSuccess, hipMemcpyAsync(found, x->device, sizeof found, hipMemcpyDefault, NULL));
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
    assert_memory_equal(x->host, found, sizeof found);
}

static mlp_product on_device(const mlp_product *p)
{
    mlp_product there = *p;

    there.a.data = a.device;
    there.b.data = b.device;
    there.out    = out.device;
    there.bias   = p->bias ? bias.device : NULL;
    there.gate   = p->gate ? gate.device : NULL;
    return there;
}

static void check_product(mlp_product p)
{
    mlp_device  host  = mlp_host_open();
    mlp_product there = on_device(&p);

    host.multiply(&host, &p);
    assert_int_equal(0, mlp_launch_multiply(&there, NULL));
    assert_same(&out);
}

static void products_are_those_of_the_host(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {4, 4, 4}, {3, 5, 7}, {9, 13, 40}, {40, 40, 2}, {7, 6, 0}, {0, 5, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t rows = sizes[i][0], columns = sizes[i][1], steps = sizes[i][2];
        mlp_product  p = {.a       = {a.host, steps, 1},
                          .b       = {b.host, columns, 1},
                          .rows    = rows,
                          .columns = columns,
                          .steps   = steps,
                          .out     = out.host};

        check_product(p);
        p.a       = (mlp_matrix){a.host, 1, rows};
        p.b       = (mlp_matrix){b.host, 1, steps};
        p.bias    = bias.host;
        p.rectify = 1;
        check_product(p);
        p.gate    = gate.host;
        p.rectify = 0;
        check_product(p);
    }
}

static void activations_are_those_of_the_host(void **state)
{
    static const size_t sizes[][2] = {{1, 1}, {17, 3}, {40, 40}, {0, 7}};
    mlp_device          host       = mlp_host_open();

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int rectify = 0; rectify < 2; rectify++) {
            mlp_activation x = {
                .values = out.host, .rows = sizes[i][0], .columns = sizes[i][1], .bias = bias.host, .rectify = rectify};

            host.activate(&host, &x);
            x.values = out.device;
            x.bias   = bias.device;
            assert_int_equal(0, mlp_launch_activate(&x, NULL));
            assert_same(&out);
        }
    }
}

static void sums_are_those_of_the_host(void **state)
{
    static const size_t sizes[][2] = {{1, 1}, {17, 3}, {40, 40}, {0, 7}};
    mlp_device          host       = mlp_host_open();

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        mlp_sum s = {.data = a.host, .rows = sizes[i][0], .columns = sizes[i][1], .out = out.host};

        host.sum(&host, &s);
        s.data = a.device;
        s.out  = out.device;
        assert_int_equal(0, mlp_launch_sum(&s, NULL));
        assert_same(&out);
    }
}

static void assert_near(const float *wanted, const float *there, size_t n)
{
    float found[ELEMENTS];

    assert_int_equal(hipSuccess, hipMemcpyAsync(found, there, n * sizeof *found, hipMemcpyDefault, NULL));
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
    for (size_t i = 0; i < n; i++) {
        assert_true(fabsf(wanted[i] - found[i]) <= 1e-6F * (1 + fabsf(wanted[i])));
    }
}

static void losses_are_those_of_the_host(void **state)
{
    enum { ROWS = 23, COLUMNS = 10 };
    mlp_device    host = mlp_host_open();
    unsigned char labels[ROWS], found[ROWS], found_there[ROWS], *marks;
    float         losses[ROWS];

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        labels[i] = (unsigned char)(3 * i % COLUMNS);
    }
    assert_int_equal(hipSuccess, hipMalloc((void **)&marks, 2 * (size_t)ROWS));
    assert_int_equal(hipSuccess, hipMemcpyAsync(marks, labels, ROWS, hipMemcpyDefault, NULL));
    mlp_loss l = {.logits  = a.host,
                  .labels  = labels,
                  .rows    = ROWS,
                  .columns = COLUMNS,
                  .scale   = 0.125F,
                  .losses  = losses,
                  .found   = found};
    host.loss(&host, &l);
    l.logits = a.device;
    l.labels = marks;
    l.losses = out.device;
    l.found  = marks + ROWS;
    assert_int_equal(0, mlp_launch_loss(&l, NULL));
    assert_near(a.host, a.device, (size_t)ROWS * COLUMNS);
    assert_near(losses, out.device, ROWS);
    assert_int_equal(hipSuccess, hipMemcpyAsync(found_there, l.found, ROWS, hipMemcpyDefault, NULL));
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
    assert_memory_equal(found, found_there, ROWS);
    assert_int_equal(hipSuccess, hipFree(marks));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_are_those_of_the_host, make_all, release_all),
        cmocka_unit_test_setup_teardown(activations_are_those_of_the_host, make_all, release_all),
        cmocka_unit_test_setup_teardown(sums_are_those_of_the_host, make_all, release_all),
        cmocka_unit_test_setup_teardown(losses_are_those_of_the_host, make_all, release_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
