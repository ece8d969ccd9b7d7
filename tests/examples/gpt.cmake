# 03_gpt. What it learns are numbers in words, the same bytes for ever: no package with data is needed, and no change of a source
# file moves a loss.
set(gpt_text "${CMAKE_CURRENT_BINARY_DIR}/numbers.txt")
function(gpt_write_numbers file)
    set(ones "" one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
        nineteen)
    set(tens "" "" twenty thirty forty fifty sixty seventy eighty ninety)
    set(text "")
    foreach(n RANGE 1 699)
        math(EXPR hundred "${n} / 100")
        math(EXPR rest "${n} % 100")
        math(EXPR ten "${rest} / 10")
        math(EXPR one "${rest} % 10")
        set(words "")
        if(hundred)
            list(GET ones ${hundred} word)
            list(APPEND words ${word} hundred)
        endif()
        if(hundred AND rest)
            list(APPEND words and)
        endif()
        if(rest LESS 20)
            list(GET ones ${rest} word)
            list(APPEND words ${word})
        else()
            list(GET tens ${ten} word)
            list(GET ones ${one} last)
            list(APPEND words ${word} ${last})
        endif()
        list(JOIN words " " words)
        string(APPEND text "${n} is ${words}.\n")
    endforeach()
    file(WRITE "${file}" "${text}")
endfunction()
gpt_write_numbers("${gpt_text}")
set(gpt_small --data "${gpt_text}" --layers 2 --heads 2 --width 48 --context 40)

# The f64 form checks gradients against differences and leaves them in a file, for the f32 form to be held against.
fsdp_unit_test(NAME examples.gpt_gradients_f64 SOURCES test_gpt_gradients.c ARGS gpt_gradients.f64)
fsdp_unit_test(NAME examples.gpt_gradients_f32 SOURCES test_gpt_gradients.c ARGS gpt_gradients.f64)
target_link_libraries(test_examples_gpt_gradients_f64 PRIVATE gpt_model_f64)
target_link_libraries(test_examples_gpt_gradients_f32 PRIVATE gpt_model)
set_tests_properties(examples.gpt_gradients_f64 PROPERTIES FIXTURES_SETUP gpt_gradients)
set_tests_properties(examples.gpt_gradients_f32 PROPERTIES FIXTURES_REQUIRED gpt_gradients)

# Layers divided over ranks, in f64.
set(gpt_layer_sources ../../mpi-examples/03_gpt/gpt_layer.c ../../mpi-examples/03_gpt/gpt_activation.c)
fsdp_mpi_test(NAME examples.gpt_layer SOURCES test_gpt_layer.c ${gpt_layer_sources} RANKS 1 2 4 QUICK 2)
target_link_libraries(test_examples_gpt_layer PRIVATE gpt_model_f64 fsdp_example_common)

fsdp_mpi_test(NAME examples.gpt_memory SOURCES test_gpt_memory.c RANKS 1)
target_link_libraries(test_examples_gpt_memory PRIVATE gpt_model)

fsdp_mpi_program_test(NAME examples.gpt_learns TARGET 03_gpt RANKS 1 2 3 5 8 CORE QUICK 3
                      ARGS ${gpt_small} --batch 120 --steps 40 --lr 1e-2 --interval 20 --sample 60 --progress on --profile
                      OUTPUT "^model +70848 parameters: 2 layers, 2 heads, width 48, context 40 bytes$"
                             "^ranks +[0-9]+, FULL_SHARD, f32" "step +40 . loss [0-3][.]"
                             "% waiting . CPU: [0-9.]+% communication, [0-9.]+% system . "
                             "^  matrix products +[0-9.]+%$" "step [0-9]+ of 40, [0-9]+:[0-9][0-9] left"
                             "validation loss [0-3][.][0-9]+ nats per byte" "^written by the model:$" "^memory held ")
fsdp_mpi_program_test(NAME examples.gpt_muon TARGET 03_gpt RANKS 2 3 QUICK 2
                      ARGS ${gpt_small} --optimizer muon --batch 60 --steps 20 --warmup 5 --interval 20 --val-batches 1 --sample 0
                      OUTPUT "^ranks +[0-9]+, FULL_SHARD, f32, Muon for matrices;" "step +20 . loss [0-4][.]" "[(][+]0.00%[)]$")
fsdp_mpi_program_test(NAME examples.gpt_help TARGET 03_gpt RANKS 2 ARGS --help OUTPUT "^  --val-batches X +batches"
                      "^  The last twentieth of the text, rounded down to bytes, is for validation, the rest for training[.]")

# gpt_check(NAME n SCRIPT [ARGUMENT...]): a script that starts the ranks itself
function(gpt_check name n script)
    fsdp_add_test(NAME ${name} RANKS ${n} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN})
endfunction()

fsdp_test_allowed_ranks(allowed ON "1;2;3;4;8")
list(JOIN allowed " " ranks)
gpt_check(examples.gpt_exact 8 check_gpt_exact.sh "${ranks}" $<TARGET_FILE:03_gpt> "${gpt_text}" ${MPIEXEC_EXECUTABLE}
          ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})

fsdp_test_allowed_ranks(allowed ON "1;2;3;4;6")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_node_shapes.n${n} ${n} check_gpt_node_shapes.sh ${n} $<TARGET_FILE:03_gpt> "${gpt_text}"
              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()

gpt_check(examples.gpt_full_output 2 ../support/check_full_output.sh ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2
          ${FSDP_TEST_MPIEXEC_FLAGS} -- $<TARGET_FILE:03_gpt> --help)

fsdp_test_allowed_ranks(allowed ON "1;3")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_bad_input.n${n} ${n} check_gpt_bad_input.sh $<TARGET_FILE:03_gpt> ${MPIEXEC_EXECUTABLE}
              ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
    set_property(TEST examples.gpt_bad_input.n${n} APPEND PROPERTY ENVIRONMENT RANKS=${n})
endforeach()

fsdp_test_allowed_ranks(allowed ON "4")
foreach(n IN LISTS allowed)
    foreach(part overlap micro_batches halves hooks)
        gpt_check(examples.gpt_${part}.n${n} ${n} check_gpt_options.sh ${part} ${n} $<TARGET_FILE:03_gpt> "${gpt_text}"
                  ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
    endforeach()
endforeach()

fsdp_test_allowed_ranks(allowed ON "2")
if(allowed)
    gpt_check(examples.gpt_stop.n2 2 check_stop.sh 2 ${FSDP_MPI_FLAVOUR} $<TARGET_FILE:03_gpt> "${gpt_text}" ${MPIEXEC_EXECUTABLE}
              ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
endif()

fsdp_test_allowed_ranks(allowed ON "2;4")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_budget.n${n} ${n} check_gpt_budget.sh ${n} $<TARGET_FILE:03_gpt> "${gpt_text}"
              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()

fsdp_test_allowed_ranks(allowed ON "3")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_lost_rank.n${n} ${n} check_gpt_lost_rank.sh $<TARGET_FILE:03_gpt> "${gpt_text}"
              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()

# On a mesh of data, tensor and pipeline parallelism.
fsdp_test_allowed_ranks(allowed ON "4")
foreach(n IN LISTS allowed)
    foreach(part quick shapes checkpoints)
        set(chosen full)
        if(part STREQUAL "quick")
            set(chosen quick)
        endif()
        fsdp_add_test(NAME examples.gpt_mesh_${part}.n${n} RANKS ${n} SET ${chosen}
                      COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/check_gpt_mesh.sh" ${part} $<TARGET_FILE:03_gpt> "${gpt_text}"
                              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
    endforeach()
endforeach()
fsdp_test_allowed_ranks(allowed OFF "8")
foreach(n IN LISTS allowed)
    foreach(part all resumes_all)
        fsdp_add_test(NAME examples.gpt_mesh_${part}.n${n} RANKS ${n} SET soak TIMEOUT 14400
                      COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/check_gpt_mesh.sh" ${part} $<TARGET_FILE:03_gpt> "${gpt_text}"
                              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
    endforeach()
endforeach()

# Checkpoints: STEP is behind the warm-up, and in f16 the loss is scaled.
fsdp_test_allowed_ranks(allowed ON "2;3")
foreach(n IN LISTS allowed)
    foreach(dtype f32 f16)
        gpt_check(examples.gpt_resume_${dtype}.n${n} ${n} check_resume.sh ${n} 4 9 $<TARGET_FILE:03_gpt> ${MPIEXEC_EXECUTABLE}
                  ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS} -- ${gpt_small} --batch 12 --steps 16 --warmup 4
                  --val-batches 1 --sample 0 --reduce-dtype ${dtype})
    endforeach()
endforeach()

fsdp_test_allowed_ranks(allowed OFF "1;3")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_weights.n${n} ${n} check_gpt_weights.sh $<TARGET_FILE:03_gpt> ${MPIEXEC_EXECUTABLE}
              ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()

# Muon for the matrices of the blocks.
fsdp_test_allowed_ranks(allowed OFF "1;3")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_muon_exact.n${n} ${n} check_gpt_muon.sh ${n} $<TARGET_FILE:03_gpt> "${gpt_text}" ${MPIEXEC_EXECUTABLE}
              ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
endforeach()
fsdp_test_allowed_ranks(allowed ON "2")
foreach(n IN LISTS allowed)
    gpt_check(examples.gpt_resume_muon.n${n} ${n} check_resume.sh ${n} 3 9 $<TARGET_FILE:03_gpt> ${MPIEXEC_EXECUTABLE}
              ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS} -- ${gpt_small} --optimizer muon --batch 12 --steps 16 --warmup 4
              --val-batches 1 --sample 0)
endforeach()

# A rank that stops: each one, once, and many times in soak. On nodes of all, one and two ranks.
fsdp_test_allowed_ranks(allowed ON "5")
foreach(n IN LISTS allowed)
    foreach(size 0 1 2)
        foreach(times 1 20)
            set(chosen full)
            if(times GREATER 1)
                set(chosen soak)
            endif()
            fsdp_add_test(NAME examples.gpt_stopped_rank.nodes_of_${size}.times_${times}.n${n} RANKS ${n} SET ${chosen} TIMEOUT 7200
                          ENVIRONMENT FSDP_NODE_SIZE=${size}
                          COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/check_gpt_stopped_rank.sh" ${times} $<TARGET_FILE:03_gpt> "${gpt_text}"
                                  ${n} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS})
        endforeach()
    endforeach()
endforeach()
