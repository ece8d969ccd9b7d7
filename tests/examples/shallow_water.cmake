# 07_shallow_water, and the same with MPI alone.
if(NOT TARGET 07_shallow_water)
    fsdp_add_test(NAME examples.shallow_water COMMAND sh -c "echo 'skipped: it is not built; cmake says why'; exit 77")
    return()
endif()

add_executable(shallow_water_twin shallow_water_twin.c shallow_water_basin.c shallow_water_column.c)
fsdp_internal_code(shallow_water_twin)
target_compile_options(shallow_water_twin PRIVATE -ffp-contract=off)
target_link_libraries(shallow_water_twin PRIVATE fsdp::fsdp m)

# shallow_water_check(NAME name SCRIPT script RANKS n... [QUICK n...] [ARGS argument...]): a script that starts the ranks itself
function(shallow_water_check)
    cmake_parse_arguments(T "" "NAME;SCRIPT" "RANKS;QUICK;ARGS" ${ARGN})
    fsdp_test_allowed_ranks(allowed ON "${T_RANKS}")
    foreach(n IN LISTS allowed)
        fsdp_test_set(chosen ${n} "" "${allowed}" "${T_QUICK}" "" "")
        fsdp_add_test(NAME examples.shallow_water_${T_NAME}.n${n} RANKS ${n} SET ${chosen}
                      COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${T_SCRIPT}" ${n} $<TARGET_FILE:07_shallow_water> ${T_ARGS}
                              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
    endforeach()
endfunction()

shallow_water_check(NAME twin SCRIPT check_shallow_water_twin.sh RANKS 1 2 3 4 QUICK 3 ARGS $<TARGET_FILE:shallow_water_twin>)
shallow_water_check(NAME exact SCRIPT check_shallow_water_exact.sh RANKS 4 ARGS $<TARGET_FILE:07_shallow_water_plain>)
shallow_water_check(NAME resume SCRIPT check_shallow_water_resume.sh RANKS 4)
shallow_water_check(NAME bad_input SCRIPT check_shallow_water_bad_input.sh RANKS 1 5 ARGS $<TARGET_FILE:07_shallow_water_plain>)
if(TARGET fsdp_mpi)
    shallow_water_check(NAME drop_in SCRIPT check_shallow_water_drop_in.sh RANKS 2
                        ARGS $<TARGET_FILE:07_shallow_water_plain> $<TARGET_FILE:fsdp_mpi>)
endif()

fsdp_mpi_program_test(NAME examples.shallow_water_help TARGET 07_shallow_water RANKS 2 ARGS --help
                      OUTPUT "^  --updates X +optimizer steps per time step; 0: the solver alone [(]4[)]$" "^  --strategy X ")
# What it learns: a tenth of the term at most, on steps that it has not seen; and the basin keeps its water.
fsdp_mpi_program_test(NAME examples.shallow_water_learns TARGET 07_shallow_water RANKS 2
                      ARGS --nx 32 --ny 32 --steps 100 --test 5 --compare 20
                      OUTPUT "^surrogate   error +0[.]0[0-9]+ of the term, RMS over 5 unseen steps"
                             "^in place    after 20 steps the surface differs by 0[.]0"
                             "^in place    change of the volume: with the surrogate +-?[0-9.]+E-1[4-9]")
