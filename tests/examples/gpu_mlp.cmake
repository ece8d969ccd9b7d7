# 05_gpu_mlp, on images that it makes up: on the host, and its kernels on the double of the HIP runtime.
set(small --data made-up --train-images 130 --test-images 40 --batch 40 --hidden 24 --layers 2 --epochs 2)

fsdp_mpi_program_test(NAME examples.gpu_mlp.host TARGET 05_gpu_mlp RANKS 1 3 ARGS ${small} --exact
                      OUTPUT "^ranks +[13], FULL_SHARD, on host$" "^exact step 8 loss " "^epoch 2 [|] loss [0-9.]+ [|] test loss"
                             "^exact parameters [0-9a-f]+$")
fsdp_mpi_program_test(NAME examples.gpu_mlp.learns TARGET 05_gpu_mlp RANKS 2
                      ARGS --data made-up --train-images 1000 --test-images 200 --batch 50 --hidden 32 --epochs 2
                      OUTPUT "^epoch 2 [|] .* accuracy (9[0-9]|100)[.]")
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
endif()
