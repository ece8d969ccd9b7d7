# 05_gpu_mlp, on images that it makes up: on the host, and on the double of the HIP runtime.
set(small --data made-up --train-images 130 --test-images 40 --batch 40 --hidden 24 --layers 2 --epochs 2)

fsdp_mpi_program_test(NAME examples.gpu_mlp.host TARGET 05_gpu_mlp RANKS 1 3 QUICK 3 ARGS ${small} --exact
                      OUTPUT "^ranks +[13], FULL_SHARD, on host$" "^exact step 8 loss " "^epoch 2 [|] loss [0-9.]+ [|] test loss"
                             "^exact parameters [0-9a-f]+$")
fsdp_mpi_program_test(NAME examples.gpu_mlp.learns TARGET 05_gpu_mlp RANKS 2
                      ARGS --data made-up --train-images 1000 --test-images 200 --batch 50 --hidden 32 --epochs 2
                      OUTPUT "^epoch 2 [|] .* accuracy (9[0-9]|100)[.]")
fsdp_mpi_program_test(NAME examples.gpu_mlp.tp_on_host TARGET 05_gpu_mlp RANKS 3 ARGS ${small} --tp 3
                      OUTPUT "^mesh +dp 1 x tp 3: layers are divided in pairs$" "^epoch 2 [|] loss [0-9.]+ [|] test loss")
fsdp_mpi_program_test(NAME examples.gpu_mlp.tp_of_the_width TARGET 05_gpu_mlp RANKS 2 ARGS --tp 2 --hidden 33 FAILS
                      OUTPUT "--tp 2 does not divide the 33 columns of --hidden; use a divisor$")
fsdp_mpi_program_test(NAME examples.gpu_mlp.too_many_stages TARGET 05_gpu_mlp RANKS 2 ARGS --data made-up --layers 1 --pp 4 FAILS
                      OUTPUT "--pp 4 does not divide 2 ranks")
fsdp_mpi_program_test(NAME examples.gpu_mlp.divided_twice TARGET 05_gpu_mlp RANKS 2 ARGS --tp 2 --pp 2 FAILS
                      OUTPUT "--tp 2 and --pp 2 divide the layers in two ways; use one of them")
fsdp_mpi_program_test(NAME examples.gpu_mlp.help TARGET 05_gpu_mlp RANKS 2 ARGS --help
                      OUTPUT "^  --device X +where the network is, .* [(]host[)]$")
fsdp_mpi_program_test(NAME examples.gpu_mlp.offload_of_nothing TARGET 05_gpu_mlp RANKS 2 ARGS --offload FAILS
                      OUTPUT "--offload .* use --device gpu with it$")
fsdp_mpi_program_test(NAME examples.gpu_mlp.no_data TARGET 05_gpu_mlp RANKS 2 ARGS --data /nowhere FAILS
                      OUTPUT "--data is '/nowhere': No such file or directory")
if(NOT FSDP_WITH_GPU_KERNELS)
    fsdp_mpi_program_test(NAME examples.gpu_mlp.no_runtime TARGET 05_gpu_mlp RANKS 1 3 ARGS --device gpu FAILS
                          OUTPUT "FSDP_DEVICE is 'gpu', but this build of the library has no GPU")
endif()

if(CMAKE_CXX_COMPILER)
    set(example "${PROJECT_SOURCE_DIR}/mpi-examples/05_gpu_mlp")
    fsdp_hip_double_kernels(gpu_mlp_kernels_on_double "${example}/mlp_kernels.cpp")
    fsdp_unit_test(NAME examples.gpu_mlp.kernels SOURCES test_gpu_mlp_kernels.c "${example}/mlp_host.c" LABELS gpu)
    fsdp_link_hip_double(examples.gpu_mlp.kernels)
    target_link_libraries(test_examples_gpu_mlp_kernels PRIVATE gpu_mlp_kernels_on_double)
    target_compile_options(test_examples_gpu_mlp_kernels PRIVATE -ffp-contract=off)

    find_package(ZLIB REQUIRED)
    fsdp_gpu_program(test_gpu_mlp $<TARGET_OBJECTS:gpu_mlp_objects> $<TARGET_OBJECTS:fsdp_example_common>
                     "${example}/mlp_gpu.c")
    target_link_libraries(test_gpu_mlp PRIVATE gpu_mlp_kernels_on_double ZLIB::ZLIB ${FSDP_CBLAS_LIBRARIES})

    # gpu_mlp_check(NAME RANKS [OPTION...] [ON_GPUS OPTION...]): the losses on the double are those on the host; in the set gpu_mlp_set
    set(gpu_mlp_set full)
    function(gpu_mlp_check name ranks)
        cmake_parse_arguments(T "" "" "ON_GPUS" ${ARGN})
        fsdp_test_allowed_ranks(allowed "" "${ranks}")
        foreach(n IN LISTS allowed)
            fsdp_add_test(NAME ${name}.n${n} RANKS ${n} SET ${gpu_mlp_set} LABELS gpu device ENVIRONMENT FSDP_BIND=none HIP_DOUBLE_DELAY_US=20
                          COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/check_gpu_mlp.sh" "${small};${T_UNPARSED_ARGUMENTS}|${T_ON_GPUS}" $<TARGET_FILE:test_gpu_mlp>
                                  ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
        endforeach()
    endfunction()
    gpu_mlp_check(examples.gpu_mlp "1;2;3")
    gpu_mlp_check(examples.gpu_mlp.offload 2 ON_GPUS --offload)
    # Two pairs of layers; with sums in another order than one rank has them.
    gpu_mlp_check(examples.gpu_mlp.tp 4 --layers 3 ON_GPUS --tp 2 --offload)
    gpu_mlp_check(examples.gpu_mlp.shard_grad_op 3 --strategy shard_grad_op)
    gpu_mlp_check(examples.gpu_mlp.no_shard 2 --strategy no_shard)
    gpu_mlp_check(examples.gpu_mlp.pipeline 2 --pp 2)
    set(gpu_mlp_set soak)
    gpu_mlp_check(examples.gpu_mlp.pipelines 4 --pp 2)
    gpu_mlp_check(examples.gpu_mlp.pipeline_offload 3 --pp 3 --micro 5 --schedule gpipe ON_GPUS --offload)

    fsdp_mpi_program_test(NAME examples.gpu_mlp.no_device TARGET test_gpu_mlp RANKS 2 ARGS --device gpu FAILS LABELS gpu
                          OUTPUT "FSDP_DEVICE is 'gpu', but the runtime finds no GPU; use 'auto' or 'host'")
    if(TEST examples.gpu_mlp.no_device.n2)
        set_property(TEST examples.gpu_mlp.no_device.n2 APPEND PROPERTY ENVIRONMENT HIP_DOUBLE_GPUS=0)
    endif()
endif()
