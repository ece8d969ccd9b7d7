# How tests are declared, launched and limited.
#
#   fsdp_unit_test(NAME kernels.reduce SOURCES test_reduce.c [LABELS slow] [ARGS ...] [TIMEOUT s])
#       a cmocka program in one process, started without mpiexec; it can reach the library's hidden symbols
#   fsdp_mpi_test(NAME collectives.allgather SOURCES test_allgather.c RANKS 1 2 3 5 8 [CORE] [LABELS slow]
#                 [ARGS ...] [TIMEOUT s])
#       a cmocka program under mpiexec, one entry per rank count; see tests/support/mpi_test.h
#   fsdp_mpi_program_test(NAME examples.hello TARGET 01_hello_collectives RANKS 1 4 [CORE] [FAILS]
#                         [OUTPUT regex ...] [LABELS slow] [ARGS ...] [TIMEOUT s])
#       any program under mpiexec: each rank must exit with 0 (FAILS: each with another status), and the output must
#       have a line for each of the regular expressions (grep -E)
#
# CORE marks what also runs on more ranks where FSDP_TEST_MAX_RANKS limits the rest.
set(FSDP_TEST_MAX_RANKS 1000 CACHE STRING "Leave out tests on more ranks than this")
set(FSDP_TEST_MAX_RANKS_CORE ${FSDP_TEST_MAX_RANKS} CACHE STRING "The same for tests marked CORE")

set(FSDP_TEST_TIMEOUT 600) # SECONDS, unless a test says otherwise
set(FSDP_TEST_EXPECT "${PROJECT_SOURCE_DIR}/tests/support/expect.sh")

# More ranks than cores are usual in tests, and binding would put them all on the first ones.
set(FSDP_TEST_MPIEXEC_FLAGS "")
if(FSDP_MPI_FLAVOUR STREQUAL "openmpi")
    set(FSDP_TEST_MPIEXEC_FLAGS --oversubscribe --bind-to none)
endif()

# For Open MPI: root is fine in a container, and one machine needs shared memory only, which also starts 0.2 s faster
# since no network is looked for. A job that fails need not be given 2 s to clean up. FSDP_TIMEOUT_S makes a hang an
# error with a name.
set(FSDP_TEST_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_odls_base_sigkill_timeout=0
    OMPI_MCA_pml=ob1
    OMPI_MCA_btl=self,vader
    OMP_NUM_THREADS=1
    OPENBLAS_NUM_THREADS=1
    FSDP_TIMEOUT_S=120)
# No detect_stack_use_after_return: GCC 12 aligns its copy of the stack too little for 64-byte vectors.
if(FSDP_SANITIZE)
    set(support "${PROJECT_SOURCE_DIR}/tests/support")
    list(APPEND FSDP_TEST_ENVIRONMENT
        "LD_PRELOAD=$<TARGET_FILE:fsdp_keep_loaded>"
        "ASAN_OPTIONS=verify_asan_link_order=0:fast_unwind_on_malloc=0:strict_string_checks=1:handle_segv=2:handle_sigbus=2:handle_sigfpe=2"
        "LSAN_OPTIONS=suppressions='${support}/lsan.supp':print_suppressions=0"
        "UBSAN_OPTIONS=print_stacktrace=1"
        "TSAN_OPTIONS=ignore_noninstrumented_modules=1")
endif()

# The properties that all tests share. `processors`: how many cores it keeps busy, so that CTest runs it alone if need be.
function(fsdp_test_properties name processors timeout labels)
    string(REGEX REPLACE "\\..*" "" folder "${name}")
    set_tests_properties(${name} PROPERTIES
        LABELS "${folder};${labels}"
        TIMEOUT ${timeout}
        PROCESSORS ${processors}
        SKIP_RETURN_CODE 77)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${FSDP_TEST_ENVIRONMENT})
endfunction()

# Gives in `result` those of `ranks` that may be used here.
function(fsdp_test_allowed_ranks result core ranks)
    set(limit ${FSDP_TEST_MAX_RANKS})
    if(core)
        set(limit ${FSDP_TEST_MAX_RANKS_CORE})
    endif()
    set(chosen "")
    foreach(n IN LISTS ranks)
        if(NOT n MATCHES "^[1-9][0-9]*$")
            message(FATAL_ERROR "RANKS '${ranks}' is not a list of positive numbers")
        endif()
        if(n LESS_EQUAL limit)
            list(APPEND chosen ${n})
        endif()
    endforeach()
    set(${result} ${chosen} PARENT_SCOPE)
endfunction()

# Parses the arguments of the three functions into T_*, in the caller's scope.
macro(fsdp_test_arguments)
    cmake_parse_arguments(T "CORE;FAILS" "NAME;TARGET;TIMEOUT" "SOURCES;RANKS;LABELS;ARGS;OUTPUT" ${ARGN})
    if(NOT T_NAME OR T_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "Test '${T_NAME}': needs NAME, and does not know '${T_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT ${FSDP_TEST_TIMEOUT})
    endif()
endmacro()

# The program of a test: name `test_kernels_reduce` for the test `kernels.reduce`.
function(fsdp_test_program target sources)
    add_executable(${target} ${sources})
    fsdp_internal_code(${target})
    target_link_libraries(${target} PRIVATE fsdp_test_support)
endfunction()

function(fsdp_unit_test)
    fsdp_test_arguments(${ARGN})
    string(REPLACE "." "_" target "test_${T_NAME}")
    fsdp_test_program(${target} "${T_SOURCES}")
    add_test(NAME ${T_NAME} COMMAND ${target} ${T_ARGS})
    fsdp_test_properties(${T_NAME} 1 ${T_TIMEOUT} "${T_LABELS}")
endfunction()

function(fsdp_mpi_test)
    fsdp_test_arguments(${ARGN})
    string(REPLACE "." "_" target "test_${T_NAME}")
    fsdp_test_program(${target} "${T_SOURCES}")
    fsdp_test_allowed_ranks(allowed "${T_CORE}" "${T_RANKS}")
    foreach(n IN LISTS allowed)
        set(name ${T_NAME}.n${n})
        add_test(NAME ${name}
                 COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS}
                         $<TARGET_FILE:${target}> ${T_ARGS})
        fsdp_test_properties(${name} ${n} ${T_TIMEOUT} "${T_LABELS}")
        # A failed assertion on one of several ranks would leave the others waiting for it.
        if(n GREATER 1)
            set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT CMOCKA_TEST_ABORT=1)
        endif()
    endforeach()
endfunction()

function(fsdp_mpi_program_test)
    fsdp_test_arguments(${ARGN})
    fsdp_test_allowed_ranks(allowed "${T_CORE}" "${T_RANKS}")
    set(expected success)
    if(T_FAILS)
        set(expected failure)
    endif()
    list(TRANSFORM T_OUTPUT PREPEND "--output=" OUTPUT_VARIABLE outputs)
    foreach(n IN LISTS allowed)
        set(name ${T_NAME}.n${n})
        add_test(NAME ${name}
                 COMMAND "${FSDP_TEST_EXPECT}" ${expected} ${n} ${outputs} --
                         ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS}
                         "${FSDP_TEST_EXPECT}" --one-rank $<TARGET_FILE:${T_TARGET}> ${T_ARGS})
        fsdp_test_properties(${name} ${n} ${T_TIMEOUT} "${T_LABELS}")
    endforeach()
endfunction()
