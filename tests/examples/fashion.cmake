# 04_fashion_mnist. What learns needs Debian's dataset-fashion-mnist, and is skipped without it; the rest makes its own files.

# The f64 form checks gradients against differences and leaves them in a file, for the f32 form to be held against: on
# several ranks, each with its part of the batch, and with the library's batch normalization.
fsdp_unit_test(NAME examples.fashion_gradients_f64 SOURCES test_fashion_gradients.c QUICK ARGS fashion_gradients.f64)
target_link_libraries(test_examples_fashion_gradients_f64 PRIVATE fashion_model_f64)
set_tests_properties(examples.fashion_gradients_f64 PROPERTIES FIXTURES_SETUP fashion_gradients)

fsdp_mpi_test(NAME examples.fashion_gradients_f32 SOURCES test_fashion_gradients.c ARGS fashion_gradients.f64
              RANKS 1 2 3 5 8 QUICK 3)
target_link_libraries(test_examples_fashion_gradients_f32 PRIVATE fashion_model)
fsdp_test_allowed_ranks(allowed "" "1;2;3;5;8")
foreach(n IN LISTS allowed)
    set_tests_properties(examples.fashion_gradients_f32.n${n} PROPERTIES FIXTURES_REQUIRED fashion_gradients)
endforeach()

fsdp_mpi_program_test(NAME examples.fashion_help TARGET 04_fashion_mnist RANKS 2 ARGS --help
                      OUTPUT "^  --strategy X +what is divided over the ranks: full_shard, .* [(]FULL_SHARD[)]$" "^  --dtype X .*[(]f32[)]$")

# fashion_check(NAME n SCRIPT [ARGUMENT...]): a script that starts the ranks itself
function(fashion_check name n script)
    fsdp_add_test(NAME ${name} RANKS ${n} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN})
endfunction()

fsdp_test_allowed_ranks(allowed "" "1;3;4")
foreach(n IN LISTS allowed)
    foreach(dtype f32 bf16)
        fashion_check(examples.fashion_learns_${dtype}.n${n} ${n} check_fashion_learns.sh ${n} ${dtype}
                      $<TARGET_FILE:04_fashion_mnist> ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n}
                      ${FSDP_TEST_MPIEXEC_FLAGS})
    endforeach()
endforeach()

fsdp_test_allowed_ranks(allowed ON "1;2;3;8")
list(JOIN allowed " " ranks)
fashion_check(examples.fashion_exact 8 check_fashion_exact.sh "${ranks}" $<TARGET_FILE:04_fashion_mnist>
              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})

fsdp_test_allowed_ranks(allowed ON "1;3")
foreach(n IN LISTS allowed)
    fashion_check(examples.fashion_bad_input.n${n} ${n} check_fashion_bad_input.sh $<TARGET_FILE:04_fashion_mnist>
                  ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()

# Checkpoints: images of its own making, 5 steps an epoch.
fsdp_test_allowed_ranks(allowed ON "3")
foreach(n IN LISTS allowed)
    fashion_check(examples.fashion_resume.n${n} ${n} check_fashion_resume.sh ${n} $<TARGET_FILE:04_fashion_mnist>
                  ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()
