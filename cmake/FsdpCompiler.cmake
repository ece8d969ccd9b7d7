# Flags for our own code. Nothing here reaches those who link the library, but the sanitizers, which must.

# Warnings, definitions and include folders for a target that holds our code: library, examples, tests.
function(fsdp_internal_code target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpedantic
        $<$<BOOL:${FSDP_WERROR}>:-Werror>)
    if(FSDP_MPI_FLAVOUR STREQUAL "mpich" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # its MPI_STATUSES_IGNORE is the address 1, which GCC takes for an array that is too small
        target_compile_options(${target} PRIVATE -Wno-stringop-overflow)
    endif()
    if("thread" IN_LIST FSDP_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # fences are not seen there: ours order atomics alone, on which no race is reported
        target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    # The build's own headers come before those of a library installed for another MPI, where compilers look by themselves.
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include"
                                                 "${PROJECT_BINARY_DIR}/include")
endfunction()

# The shortest operations are a few thousand instructions in many files, so the shared library is optimized as one. -fno-plt lets
# it call MPI without a detour through the linker's table, which took 2 to 3% of their time; and GCC clears the arguments of a call
# with `rep stos` if not told otherwise, whose start took as long. The objects hold plain code as well,
# so that whoever else links them need not do the same again.
function(fsdp_optimize objects library)
    if(FSDP_SANITIZE OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT BUILD_SHARED_LIBS)
        return()
    endif()
    set(optimized $<NOT:$<CONFIG:Debug>>)
    set(flags -O3 -fno-plt -flto=auto)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        list(APPEND flags -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
    endif()
    foreach(flag IN LISTS flags)
        target_compile_options(${objects} PRIVATE $<${optimized}:${flag}>)
        target_link_options(${library} PRIVATE $<${optimized}:${flag}>)
    endforeach()
    target_compile_options(${objects} PRIVATE $<${optimized}:-ffat-lto-objects>)
    if(FSDP_MPI_FLAVOUR STREQUAL "mpich")
        target_link_options(${library} PRIVATE -Wno-stringop-overflow) # as above
    endif()
endfunction()

if(FSDP_SANITIZE)
    list(JOIN FSDP_SANITIZE "," sanitizers)
    add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${sanitizers})
endif()
