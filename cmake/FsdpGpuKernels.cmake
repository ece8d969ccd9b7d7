# The kernels of kernels/hip, compiled for GPUs: by hipcc for HIP, or by nvcc where FSDP_GPU is cuda.
#
#   FSDP_HIP_ARCHS   architectures of AMD's, as "gfx90a;gfx942"; default: those that the compiler knows of gfx90a, gfx942,
#                    gfx1030 and gfx1100
#   FSDP_CUDA_ARCHS  of NVIDIA's, as "90"; default: the compiler's own
#
# fsdp_gpu_kernels(<target> <sources>) makes a target of their objects, which are listed in FSDP_GPU_OBJECTS.
set(FSDP_HIP_ARCHS_WANTED gfx90a gfx942 gfx1030 gfx1100)

# Asks hipcc once for each; what it cannot compile for, it does not know.
function(fsdp_find_hip_archs result)
    set(probe "${PROJECT_BINARY_DIR}/CMakeFiles/hip_arch.cpp")
    file(WRITE "${probe}" "__attribute__((device)) int nothing;\n")
    set(known "")
    foreach(arch IN LISTS FSDP_HIP_ARCHS_WANTED)
        execute_process(
            COMMAND "${FSDP_HIPCC}" -x hip --offload-arch=${arch} -nogpuinc --cuda-device-only -c "${probe}" -o /dev/null
            RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(NOT failed)
            list(APPEND known ${arch})
        endif()
    endforeach()
    set(${result} "${known}" PARENT_SCOPE)
endfunction()

function(fsdp_gpu_compiler)
    set(common -O3 -std=c++17 "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/include")
    if(FSDP_GPU STREQUAL "cuda")
        set(archs "")
        foreach(arch IN LISTS FSDP_CUDA_ARCHS)
            list(APPEND archs "-gencode=arch=compute_${arch},code=sm_${arch}")
        endforeach()
        set(command "${FSDP_NVCC}" -x cu ${archs} -fmad=false -DFSDPI_GPU_CUDA -Xcompiler=-fPIC,-Wall,-Wextra
                    $<$<BOOL:${FSDP_WERROR}>:-Werror=all-warnings>)
    else()
        list(TRANSFORM FSDP_HIP_ARCHS PREPEND "--offload-arch=" OUTPUT_VARIABLE archs)
        set(command "${FSDP_HIPCC}" -x hip ${archs} -ffp-contract=off -fPIC -fno-exceptions -fno-rtti
                    -fvisibility=hidden -Wall -Wextra $<$<BOOL:${FSDP_WERROR}>:-Werror>)
    endif()
    set(FSDP_GPU_COMMAND ${command} ${common} PARENT_SCOPE)
endfunction()

function(fsdp_gpu_kernels target sources)
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/*.h" "${PROJECT_SOURCE_DIR}/kernels/hip/*.h"
         "${PROJECT_SOURCE_DIR}/kernels/host/exact_sum.h" "${PROJECT_SOURCE_DIR}/kernels/host/exponential.h"
         "${PROJECT_SOURCE_DIR}/kernels/host/half.h")
    fsdp_gpu_compiler()
    set(objects "")
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM name)
        cmake_path(GET source PARENT_PATH folder)
        file(GLOB beside CONFIGURE_DEPENDS "${folder}/*.h")
        set(object "${CMAKE_CURRENT_BINARY_DIR}/gpu_${name}.o")
        add_custom_command(OUTPUT "${object}"
            COMMAND ${FSDP_GPU_COMMAND} -c "${source}" -o "${object}"
            DEPENDS "${source}" ${headers} ${beside}
            COMMENT "Compiling kernels for GPUs: ${name}"
            COMMAND_EXPAND_LISTS VERBATIM)
        list(APPEND objects "${object}")
    endforeach()
    add_custom_target(${target} ALL DEPENDS ${objects})
    set(FSDP_GPU_OBJECTS ${objects} PARENT_SCOPE)
endfunction()

set(FSDP_WITH_GPU_KERNELS OFF)
if(FSDP_GPU STREQUAL "cuda")
    set(FSDP_CUDA_ARCHS "" CACHE STRING "Architectures of NVIDIA's GPUs, as '90'; empty: the compiler's default")
    set(FSDP_WITH_GPU_KERNELS ON)
elseif(FSDP_WITH_HIP)
    find_program(FSDP_HIPCC hipcc HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES bin)
    if(FSDP_HIPCC)
        if(NOT DEFINED CACHE{FSDP_HIP_ARCHS})
            fsdp_find_hip_archs(archs)
            set(FSDP_HIP_ARCHS "${archs}" CACHE STRING "Architectures of AMD's GPUs to compile kernels for")
        endif()
        if(FSDP_HIP_ARCHS)
            set(FSDP_WITH_GPU_KERNELS ON)
            message(STATUS "GPU kernels: ${FSDP_HIPCC} for ${FSDP_HIP_ARCHS}")
        endif()
    endif()
endif()
if(NOT FSDP_WITH_GPU_KERNELS)
    message(STATUS "GPU kernels: none")
endif()
