# 08_two_stages: a network cut in two, with the losses of one rank.
set(FSDP_TWO_STAGES_ARGS --width 32 --micro 4 --steps 3)
fsdp_mpi_program_test(NAME examples.two_stages TARGET 08_two_stages RANKS 1 2 QUICK 2 ARGS ${FSDP_TWO_STAGES_ARGS}
                      OUTPUT "^plain +2 stages on" "^the same losses, bit by bit")
foreach(schedule gpipe zb-h1)
    fsdp_mpi_program_test(NAME examples.two_stages_${schedule} TARGET 08_two_stages RANKS 4
                          ARGS ${FSDP_TWO_STAGES_ARGS} --stages 4 --schedule ${schedule}
                          OUTPUT "^${schedule} +4 stages on 4 ranks" "^the same losses, bit by bit")
endforeach()
fsdp_mpi_program_test(NAME examples.two_stages_beside TARGET 08_two_stages RANKS 4 ARGS ${FSDP_TWO_STAGES_ARGS}
                      OUTPUT "^1f1b +2 stages on 2 ranks" "^the same losses, bit by bit")
fsdp_mpi_program_test(NAME examples.two_stages_bad_input TARGET 08_two_stages RANKS 2 FAILS ARGS --stages 4
                      OUTPUT "stages is 4, of 4 layers, on 2 ranks")
fsdp_add_test(NAME examples.two_stages_exact RANKS 4
              COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/check_two_stages.sh" $<TARGET_FILE:08_two_stages> ${MPIEXEC_EXECUTABLE}
                      ${MPIEXEC_NUMPROC_FLAG} -- ${FSDP_TEST_MPIEXEC_FLAGS})
