# 06_molecular_dynamics. What needs LAMMPS, Debian's liblammps-dev, is skipped where the program is not built.
fsdp_unit_test(NAME examples.md_potential SOURCES test_md_potential.c QUICK)
target_link_libraries(test_examples_md_potential PRIVATE md_potential)

fsdp_add_test(NAME examples.md_coupling SET quick
              COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/check_md_coupling.sh" "${PROJECT_SOURCE_DIR}/mpi-examples/06_molecular_dynamics")

if(NOT FSDP_WITH_LAMMPS)
    fsdp_add_test(NAME examples.md COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/skip_md.sh")
    return()
endif()

# md_check(NAME RANKS SCRIPT [ARGUMENT...]): a script that starts the ranks itself
function(md_check name ranks script)
    fsdp_add_test(NAME ${name} RANKS ${ranks} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN}
                  ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${FSDP_TEST_MPIEXEC_FLAGS})
endfunction()

fsdp_mpi_program_test(NAME examples.md_help TARGET 06_molecular_dynamics RANKS 2 ARGS --help
                      OUTPUT "^  --mode X +both: training in the gaps .* [(]both[)]$" "^  --interval X .*[(]20[)]$")
fsdp_mpi_program_test(NAME examples.md TARGET 06_molecular_dynamics RANKS 3 5 QUICK 3
                      ARGS --cells 4 --equilibrate 20 --frames 12 --updates 4 --batches 2 --warmup 8 --test-frames 1 --drive 10
                      OUTPUT "^atoms +256 of a Lennard-Jones liquid" "^frame   12 [|] energy -[0-9.]+ [|] temperature 0[.][0-9]+ [|] loss "
                             "^forces on 1 frames not trained on: RMS error " "^ +10 +-[0-9.]+ +0[.][0-9]+ +-[0-9.]+ +0[.][0-9]+$"
                             "^     drift +[-+]0[.][0-9]+ +[-+]0[.][0-9]+$")
md_check(examples.md_runs 4 check_md_runs.sh 4 2 $<TARGET_FILE:06_molecular_dynamics>)
md_check(examples.md_learns 2 check_md_learns.sh 2 $<TARGET_FILE:06_molecular_dynamics>
         "${PROJECT_SOURCE_DIR}/mpi-examples/06_molecular_dynamics/compare.sh")
foreach(n 1 3)
    md_check(examples.md_bad_input.n${n} ${n} check_md_bad_input.sh ${n} $<TARGET_FILE:06_molecular_dynamics>)
endforeach()
