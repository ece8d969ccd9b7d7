# How tests are declared, launched and limited.
#
#   fsdp_unit_test(NAME kernels.reduce SOURCES test_reduce.c [QUICK] [LABELS ...] [ARGS ...] [TIMEOUT s])
#       a cmocka program in one process, started without mpiexec; it can reach the library's hidden symbols
#   fsdp_mpi_test(NAME collectives.allgather SOURCES test_allgather.c RANKS 1 2 3 5 8 [CORE] [QUICK 2 3 5] [FULL 8] [SOAK 5]
#                 [LABELS ...] [ARGS ...] [TIMEOUT s])
#       a cmocka program under mpiexec, one entry per rank count; see tests/support/mpi_test.h
#   fsdp_mpi_program_test(NAME examples.hello TARGET 01_hello_collectives RANKS 1 4 [CORE] [QUICK 4] [FAILS]
#                         [OUTPUT regex ...] [LABELS ...] [ARGS ...] [TIMEOUT s])
#       any program under mpiexec: each rank must exit with 0 (FAILS: each with another status), and the output must
#       have a line for each of the regular expressions (grep -E)
#   fsdp_add_test(NAME topo.text [RANKS n] [SET quick|full|soak] [LABELS ...] [TIMEOUT s] [ENVIRONMENT A=b ...] COMMAND ...)
#       anything else, as a script that starts its ranks itself
#
# CORE marks what also runs on more ranks where FSDP_TEST_MAX_RANKS limits the rest, and on one where FSDP_TEST_FEW is set.
#
# Each entry has one of the labels quick, full and soak. `tests/run.sh` runs quick, `--full` quick and full, `--soak` soak.
# QUICK names the rank counts that are in the quick set, or marks a test of one process, FULL and SOAK those that are in these. A
# test that names none of its rank counts for quick or full is in full on one of them, at most 3 where it can be; core tests are in
# full on one rank as well. The rest is in soak.
# ctest itself leaves soak out, unless it is called with `-C soak`; and so with what has another CONFIGURATION.
set(FSDP_TEST_MAX_RANKS 1000 CACHE STRING "Leave out tests on more ranks than this")
set(FSDP_TEST_MAX_RANKS_CORE ${FSDP_TEST_MAX_RANKS} CACHE STRING "The same for tests marked CORE")
option(FSDP_TEST_FEW "Run each test on one of its numbers of ranks, the core ones on one rank as well; move what takes longest to soak" OFF)
option(FSDP_TEST_UNITS "Test what is the same with any MPI; OFF moves it to soak" ON)
set(FSDP_TEST_TIME_FACTOR 1 CACHE STRING "Multiplies every time limit of the tests")
if(NOT FSDP_TEST_TIME_FACTOR MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "FSDP_TEST_TIME_FACTOR is '${FSDP_TEST_TIME_FACTOR}'; give a whole number from 1")
endif()

set(FSDP_TEST_TIMEOUT 600) # SECONDS, unless a test says otherwise; what hangs ends much earlier, by FSDP_TIMEOUT_S
math(EXPR FSDP_TEST_PATIENCE "120 * ${FSDP_TEST_TIME_FACTOR}")
set(FSDP_TEST_EXPECT "${PROJECT_SOURCE_DIR}/tests/support/expect.sh")
set(FSDP_TEST_LAUNCHER "${PROJECT_SOURCE_DIR}/tests/support/with_own_tmpdir.sh")

# In soak where FSDP_TEST_FEW is set: scripts that start their programs dozens of times, variants of tests on device memory, and what
# computes for long without reaching other code.
# Under AddressSanitizer a start takes seconds, and most of the time would go into these.
set(FSDP_TEST_FEW_SOAK
    "^(bench|topo)\\.options" "^bench\\.files" "_bad_input" "^examples\\.gpt_(node_shapes|overlap|halves|micro_batches|hooks|stop)"
    "^examples\\.(gpt_resume_f16|gpt_resume_muon|gpt_muon_exact|fashion_learns_bf16)"
    "^shard\\.(kept_units|granularity|alignment|tensor_groups|unit_strategies|strategies_16_bits)\\.device"
    "^shard\\.(unused_units|step_divisor|grad_norms|group_sync|replay)\\.device"
    "^install\\.static" "^checkpoint\\.(kills|full_disk)" "\\.(nodes_of_1|aware|little_staging|offloaded)\\.n[0-9]+$"
    "^shard\\.disagreement\\.device" "\\.aarch64$" "^records\\.faults"
    "^bench\\.((bf16|f16|f64|i64|u8)_avg|max|min|prod|version|unknown_option|no_check|single|twin)" "^(docs|install)\\." "_help\\."
    "^examples\\.gpu_mlp\\.(help|no_|offload_of)" "^(shard|checkpoint|examples|bench)\\..*\\.n1$" "^topo\\.(files|recorded_files|job|launch)"
    "^run\\." "^examples\\.(gpt_(exact|weights|resume_f32|lost_rank|mesh_shapes)|fashion_(exact|resume)|two_stages_exact)"
    "^shard\\.(random_models|passes|strategies|tensors|norms|custom_optimizer|tensor_io)\\.device" "^checkpoint\\.save_load\\.device"
    "^gpu\\.model\\.(without_ipc|aware|nodes_of_2)" "^bench\\.(nodes|memory|network|tune|in_place|shared_result|overlap)"
    "^collectives\\..*\\.(without_cma|without_ipc)" "^bench\\.step\\.(NO|SHARD|HYBRID|f16|fixed)" "^bench\\.(algorithms|full_output)"
    "^(gpu\\.)?kernels\\.(reduce_into|sum_squares)$" "^topology\\.(every_recorded_node|random_nodes)" "^gpu\\.bench\\.(user|nodes|kernels)"
    "^shard\\.(optimizer|training|gradient_sums|loss_scaler|trace|clip|shard_dot|initial_values)\\.device"
    "^collectives\\.(allreduce|broadcast|reduce|alltoall|bf16)\\.device\\.nodes_of_2" "^examples\\.(fashion_learns_f32|gpt_gradients)"
    "^scale\\." "^shard\\.(lbfgs|muon|moments_8_bit|random_models)\\.n")

# In soak where FSDP_TEST_FEW is not set, which has one number of ranks anyway: the same script or variant of a model's test on others.
set(FSDP_TEST_OTHERS_SOAK
    "^examples\\.gpt_node_shapes\\.n[1236]$" "^examples\\.(gpt|fashion|md)_bad_input\\.n1$" "^examples\\.gpt_stopped_rank\\.nodes_of_[01]"
    "^examples\\.gpt_(resume_f32|resume_f16|weights|muon_exact|budget)\\.n[12]$" "^examples\\.fashion_learns_[bf0-9]+\\.n[14]$"
    "^examples\\.gpu_mlp\\.n[12]$" "^docs\\.with_(onednn|libtorch)\\.n[12]$"
    "^shard\\.(initial_values|model|clip|norms|shard_dot|loss_scaler|tensor_io|tensor_groups|custom_optimizer)\\.device\\.offloaded"
    "^shard\\.(gradient_sums|tensors|trace|granularity|alignment|unused_units|step_divisor|grad_norms)\\.device\\.offloaded"
    "^shard\\.(group_sync|kept_units|replay|strategies_16_bits)\\.device\\.offloaded")

# Not in quick but in full, wherever they are defined: what takes seconds, where others of the quick set show the same machinery at
# work. Together with those the quick set would take five minutes, and nobody waits so long before each commit.
set(FSDP_TEST_LONGER
    "^source\\.(headers_cxx|tidy_is_repeated|rooms_are_checked|waits_are_found)" "^cluster\\." "^gpu\\.model" "^tools\\.ckpt"
    "^shard\\.(unit_strategies|kept_units|lbfgs|disagreement|granularity|keep_on_node|budget|passes|unused_units|step_divisor)\\.n"
    "^shard\\.(grad_norms|pipeline_faults|prefetch|f64|replay|tensor_groups|tensors|moments_8_bit|trace|clip|local_shards)\\.n"
    "^shard\\.(tensor_io|custom_optimizer|group_sync|slots|random_models|loss_scaler|alignment|shard_dot|muon)\\.n"
    "^shard\\.(fixed_addresses|tensors_at_fixed_addresses|node_memory)\\.n"
    "^collectives\\.(algorithms|node_groups|lanes|counts|alltoallv|any_memory)\\.(n[235]$|nodes_of_2)" "^collectives\\.[a-z_]+\\.n5$"
    "^checkpoint\\.(cache|faults|arrays|file_systems|several_models|several_models_faults|hook_state)\\.n"
    "^kernels\\.(reduce_into|sum_squares|multiply)$" "^preload\\.(mpi_f08|use_mpi)" "^docs\\.(first_model_f90|own_optimizer)"
    "^install\\.drop_in" "^lib\\.(buffers|mpi_end)\\.n")

# In soak where FSDP_TEST_UNITS is not set, as are tests of one process: what only computes, reads files, or builds programs; and of
# models, what calls collectives of the library in no other way than the tests that stay.
set(FSDP_TEST_UNITS_SOAK
    "^(docs|fuzz|tools)\\." "^topo\\.(files|recorded_files|text)" "^install\\.(examples|cmake_listing|cmake_cxx|static|pages|symbols|programs)"
    "^examples\\.(.*_gradients|gpt_(memory|muon|full_output|budget|weights)|.*_help|hello_(settings|unknown|valgrind)|md)"
    "^examples\\.(shallow_water_(learns|resume|exact)|gpu_mlp\\.(help|no_|offload|host|tp|too|divided|pipeline))"
    "^gpu\\.(bench|runtime|double_ipc|device_peers|pipeline)" "^topology\\." "^lib\\.(cast|log_function|machine|recorder)" "^scale\\."
    "^checkpoint\\.(rows|several|file_systems|byte_order|earlier|cache|faults)"
    "^bench\\.(step|help|full_output|algorithms|memory|shards|checkpoint|floor_plans|progress|reuse)"
    "^shard\\..*\\.device\\.n[0-9]+$"
    "^shard\\.(initial_values|model|budget|node_memory|clip|norms|shard_dot|loss_scaler|tensor_io|grouping|options|names)\\.n[0-9]+$"
    "^shard\\.(local_shards|custom_optimizer|moments_8_bit|gradient_sums|hook_parts|tensors|strategies_16_bits|granularity)\\.n[0-9]+$"
    "^shard\\.(muon|f64|lbfgs|alignment|unit_strategies|slots|prefetch|fixed_addresses|tensors_at_fixed_addresses)\\.n[0-9]+$"
    "^shard\\.(requests|model_hooks|unused_units|step_divisor|grad_norms|kept_units|resident)\\.n[0-9]+$"
    "^shard\\.(tensor_groups|trace|keep_on_node|group_sync|replay|random_models|disagreement)\\.n[0-9]+$" "^preload\\.c_compared")

# More ranks than cores are usual in tests, and binding would put them all on the first ones.
set(FSDP_TEST_MPIEXEC_FLAGS "")
if(FSDP_MPI_FLAVOUR STREQUAL "openmpi")
    set(FSDP_TEST_MPIEXEC_FLAGS --oversubscribe --bind-to none)
endif()

# For Open MPI: root is fine in a container, and one machine needs shared memory only, which also starts 0.2 s faster
# since no network is looked for. A job that fails need not be given 2 s to clean up. Open MPI 5 calls `vader` sm, but
# still knows the old name and those of its parameters; its launcher reads PRTE_MCA_*. FSDP_TIMEOUT_S makes a hang an
# error with a name. Scripts multiply limits of their own by TEST_TIME_FACTOR; the library would warn of an FSDP_* that it
# does not know.
set(FSDP_TEST_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_odls_base_sigkill_timeout=0
    PRTE_MCA_odls_base_sigkill_timeout=0
    OMPI_MCA_pml=ob1
    OMPI_MCA_btl=self,vader
    OMP_NUM_THREADS=1
    OPENBLAS_NUM_THREADS=1
    FSDP_TIMEOUT_S=${FSDP_TEST_PATIENCE}
    TEST_TIME_FACTOR=${FSDP_TEST_TIME_FACTOR})
# No detect_stack_use_after_return: GCC 12 aligns its copy of the stack too little for 64-byte vectors.
if(FSDP_SANITIZE)
    set(support "${PROJECT_SOURCE_DIR}/tests/support")
    list(APPEND FSDP_TEST_ENVIRONMENT
        "LD_PRELOAD=$<TARGET_FILE:fsdp_keep_loaded>"
        "ASAN_OPTIONS=verify_asan_link_order=0:strict_string_checks=1:handle_segv=2:handle_sigbus=2:handle_sigfpe=2"
        "LSAN_OPTIONS=suppressions='${support}/lsan.supp':print_suppressions=0"
        "UBSAN_OPTIONS=print_stacktrace=1"
        "TSAN_OPTIONS=ignore_noninstrumented_modules=1")
endif()

# Gives in `result` how many of the places of `ctest --parallel` a test of so many ranks takes. Ranks of Open MPI give their core
# away while they wait, so that two small jobs run side by side on two cores; MPICH's spin.
function(fsdp_test_processors result ranks)
    set(places ${ranks})
    if(FSDP_MPI_FLAVOUR STREQUAL "openmpi")
        math(EXPR places "(${ranks} + 4) / 5")
    endif()
    set(${result} ${places} PARENT_SCOPE)
endfunction()

# Gives in `result` whether one of the regular expressions matches.
function(fsdp_matches result name expressions)
    set(${result} OFF PARENT_SCOPE)
    foreach(expression IN LISTS expressions)
        if(name MATCHES "${expression}")
            set(${result} ON PARENT_SCOPE)
        endif()
    endforeach()
endfunction()

# Every entry is made here.
function(fsdp_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 T "" "NAME;RANKS;SET;CONFIGURATION;TIMEOUT" "LABELS;ENVIRONMENT;COMMAND")
    if(NOT T_NAME OR NOT T_COMMAND OR T_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "Test '${T_NAME}': needs NAME and COMMAND, and does not know '${T_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT T_RANKS)
        set(T_RANKS 1)
    endif()
    if(NOT T_SET)
        set(T_SET full)
    elseif(NOT T_SET MATCHES "^(quick|full|soak)$")
        message(FATAL_ERROR "Test '${T_NAME}': SET is '${T_SET}'; use quick, full or soak")
    endif()
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT ${FSDP_TEST_TIMEOUT})
    endif()
    fsdp_matches(longer "${T_NAME}" "${FSDP_TEST_LONGER}")
    if(longer AND T_SET STREQUAL "quick")
        set(T_SET full)
    endif()
    fsdp_matches(long "${T_NAME}" "${FSDP_TEST_FEW_SOAK}")
    fsdp_matches(other "${T_NAME}" "${FSDP_TEST_OTHERS_SOAK}")
    fsdp_matches(same "${T_NAME}" "${FSDP_TEST_UNITS_SOAK}")
    if((FSDP_TEST_FEW AND T_SET STREQUAL "full" AND long) OR (NOT FSDP_TEST_FEW AND other) OR (NOT FSDP_TEST_UNITS AND same))
        set(T_SET soak)
    endif()
    if(T_SET STREQUAL "soak")
        set(T_CONFIGURATION soak)
    endif()
    set(configurations "")
    if(T_CONFIGURATION)
        set(configurations CONFIGURATIONS ${T_CONFIGURATION})
        list(APPEND T_LABELS ${T_CONFIGURATION})
    endif()
    string(REGEX REPLACE "\\..*" "" folder "${T_NAME}")
    set(labels ${folder} ${T_SET} ${T_LABELS})
    list(REMOVE_DUPLICATES labels)
    math(EXPR limit "${T_TIMEOUT} * ${FSDP_TEST_TIME_FACTOR}")
    fsdp_test_processors(places ${T_RANKS})
    add_test(NAME ${T_NAME} ${configurations} COMMAND "${FSDP_TEST_LAUNCHER}" ${T_COMMAND})
    set_tests_properties(${T_NAME} PROPERTIES
        LABELS "${labels}"
        TIMEOUT ${limit}
        PROCESSORS ${places}
        SKIP_RETURN_CODE 77
        ENVIRONMENT "${FSDP_TEST_ENVIRONMENT};${T_ENVIRONMENT}")
endfunction()

# Gives in `result` the largest of `ranks` that is up to 3, or else the smallest; and 1 for core tests.
function(fsdp_test_few result core ranks)
    set(few "")
    set(one "")
    foreach(n IN LISTS ranks)
        if(few STREQUAL "" OR (few GREATER 3 AND n LESS few) OR (n LESS_EQUAL 3 AND n GREATER few))
            set(few ${n})
        endif()
        if(core AND n EQUAL 1)
            set(one 1)
        endif()
    endforeach()
    set(both ${one} ${few})
    list(REMOVE_DUPLICATES both)
    set(${result} ${both} PARENT_SCOPE)
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
    if(FSDP_TEST_FEW)
        fsdp_test_few(chosen "${core}" "${chosen}")
    endif()
    set(${result} ${chosen} PARENT_SCOPE)
endfunction()

# Gives in `result` the first of `wanted` that is one of `ranks`, if any is.
function(fsdp_test_first result wanted ranks)
    set(first "")
    foreach(n IN LISTS wanted)
        if(first STREQUAL "" AND n IN_LIST ranks)
            set(first ${n})
        endif()
    endforeach()
    set(${result} "${first}" PARENT_SCOPE)
endfunction()

# Gives in `result` the set of a test on `n` of `ranks`, those that may be used here.
function(fsdp_test_set result n core ranks quick full soak)
    fsdp_test_first(named "${quick};${full}" "${ranks}")
    if(named STREQUAL "")
        fsdp_test_few(full "${core}" "${ranks}")
    elseif(core)
        list(APPEND full 1)
    endif()
    set(chosen soak)
    if(n IN_LIST quick)
        set(chosen quick)
    elseif(n IN_LIST full AND NOT n IN_LIST soak)
        set(chosen full)
    endif()
    set(${result} ${chosen} PARENT_SCOPE)
endfunction()

# The program of a test: name `test_kernels_reduce` for the test `kernels.reduce`.
function(fsdp_test_program target sources)
    add_executable(${target} ${sources})
    fsdp_internal_code(${target})
    target_link_libraries(${target} PRIVATE fsdp_test_support)
endfunction()

function(fsdp_unit_test)
    cmake_parse_arguments(T "QUICK" "NAME;TIMEOUT" "SOURCES;LABELS;ARGS" ${ARGN})
    string(REPLACE "." "_" target "test_${T_NAME}")
    fsdp_test_program(${target} "${T_SOURCES}")
    set(chosen full)
    if(NOT FSDP_TEST_UNITS)
        set(chosen soak)
    elseif(T_QUICK)
        set(chosen quick)
    endif()
    fsdp_add_test(NAME ${T_NAME} SET ${chosen} LABELS ${T_LABELS} TIMEOUT ${T_TIMEOUT} ${T_UNPARSED_ARGUMENTS}
                  COMMAND $<TARGET_FILE:${target}> ${T_ARGS})
endfunction()

# An entry for each of RANKS that may be used here: NAME.nN. Where there is a CONFIGURATION, those that are not in ALWAYS belong to
# it; with FSDP_TEST_FEW there is only one, for the first of ALWAYS. A failed assertion on one of several ranks would leave the others waiting for it, so it ends the job.
function(fsdp_mpi_entries)
    cmake_parse_arguments(T "CORE" "NAME;TARGET;CONFIGURATION;TIMEOUT" "RANKS;ALWAYS;QUICK;FULL;SOAK;LABELS;ARGS;ENVIRONMENT" ${ARGN})
    if(T_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "Test '${T_NAME}' does not know '${T_UNPARSED_ARGUMENTS}'")
    endif()
    fsdp_test_allowed_ranks(allowed "${T_CORE}" "${T_RANKS}")
    if(FSDP_TEST_FEW AND T_CONFIGURATION)
        fsdp_test_first(allowed "${T_ALWAYS}" "${T_RANKS}")
    endif()
    foreach(n IN LISTS allowed)
        fsdp_test_set(chosen ${n} "${T_CORE}" "${allowed}" "${T_QUICK}" "${T_FULL}" "${T_SOAK}")
        set(configuration "")
        if(NOT n IN_LIST T_ALWAYS)
            set(configuration ${T_CONFIGURATION})
        endif()
        set(abort "")
        if(n GREATER 1)
            set(abort CMOCKA_TEST_ABORT=1)
        endif()
        fsdp_add_test(NAME ${T_NAME}.n${n} RANKS ${n} SET ${chosen} CONFIGURATION ${configuration} LABELS ${T_LABELS}
                      TIMEOUT ${T_TIMEOUT} ENVIRONMENT ${abort} ${T_ENVIRONMENT}
                      COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS}
                              $<TARGET_FILE:${T_TARGET}> ${T_ARGS})
    endforeach()
endfunction()

function(fsdp_mpi_test)
    cmake_parse_arguments(T "CORE" "NAME;CONFIGURATION;TIMEOUT" "SOURCES;RANKS;ALWAYS;QUICK;FULL;SOAK;LABELS;ARGS;ENVIRONMENT" ${ARGN})
    string(REPLACE "." "_" target "test_${T_NAME}")
    fsdp_test_program(${target} "${T_SOURCES}")
    set(core "")
    if(T_CORE)
        set(core CORE)
    endif()
    fsdp_mpi_entries(NAME ${T_NAME} TARGET ${target} ${core} RANKS ${T_RANKS} CONFIGURATION ${T_CONFIGURATION}
                     ALWAYS ${T_ALWAYS} QUICK ${T_QUICK} FULL ${T_FULL} SOAK ${T_SOAK} LABELS ${T_LABELS} ARGS ${T_ARGS} TIMEOUT ${T_TIMEOUT}
                     ENVIRONMENT ${T_ENVIRONMENT} ${T_UNPARSED_ARGUMENTS})
endfunction()

function(fsdp_mpi_program_test)
    cmake_parse_arguments(T "CORE;FAILS" "NAME;TARGET;TIMEOUT" "RANKS;QUICK;FULL;LABELS;ARGS;OUTPUT;ENVIRONMENT" ${ARGN})
    if(T_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "Test '${T_NAME}' does not know '${T_UNPARSED_ARGUMENTS}'")
    endif()
    fsdp_test_allowed_ranks(allowed "${T_CORE}" "${T_RANKS}")
    set(expected success)
    if(T_FAILS)
        set(expected failure)
    endif()
    list(TRANSFORM T_OUTPUT PREPEND "--output=" OUTPUT_VARIABLE outputs)
    foreach(n IN LISTS allowed)
        fsdp_test_set(chosen ${n} "${T_CORE}" "${allowed}" "${T_QUICK}" "${T_FULL}" "")
        fsdp_add_test(NAME ${T_NAME}.n${n} RANKS ${n} SET ${chosen} LABELS ${T_LABELS} TIMEOUT ${T_TIMEOUT}
                      ENVIRONMENT ${T_ENVIRONMENT}
                      COMMAND "${FSDP_TEST_EXPECT}" ${expected} ${n} ${outputs} --
                              ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${FSDP_TEST_MPIEXEC_FLAGS}
                              "${FSDP_TEST_EXPECT}" --one-rank $<TARGET_FILE:${T_TARGET}> ${T_ARGS})
    endforeach()
endfunction()
