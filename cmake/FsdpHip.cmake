# Which GPU runtime the library is built with.
#
#   FSDP_GPU  hip or cuda: the same sources, where a header gives CUDA's functions HIP's names
#   FSDP_HIP  whether it is built with the HIP runtime: AUTO (where it is found), ON or OFF
#
# Sets FSDP_WITH_HIP, which says that there is a runtime, FSDP_HIP_INCLUDE_DIR, FSDP_DEVICE_DEFINITIONS for sources that
# include it, and FSDP_DEVICE_LIBRARIES: the runtime's own, for those that link it.
#
# fsdp_link_gpu_runtime(<target>) links it, or what looks HIP up when the program runs: installed programs and the shared
# library start without it. A static library leaves that to whoever links it, since HIP's names are the program's as well.
set(FSDP_GPU hip CACHE STRING "The GPU runtime to build with: hip or cuda")
set_property(CACHE FSDP_GPU PROPERTY STRINGS hip cuda)
set(FSDP_HIP AUTO CACHE STRING "Build with the HIP runtime: AUTO, ON or OFF")
set_property(CACHE FSDP_HIP PROPERTY STRINGS AUTO ON OFF)

set(FSDP_WITH_HIP OFF)
set(FSDP_DEVICE_LIBRARIES "")
set(FSDP_DEVICE_DEFINITIONS __HIP_PLATFORM_AMD__)
if(FSDP_GPU STREQUAL "cuda")
    find_program(FSDP_NVCC nvcc HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    find_path(FSDP_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES include)
    find_library(FSDP_CUDA_LIBRARY cudart HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES lib64 lib)
    if(NOT FSDP_NVCC OR NOT FSDP_CUDA_INCLUDE_DIR OR NOT FSDP_CUDA_LIBRARY)
        message(FATAL_ERROR "FSDP_GPU is cuda, but nvcc or CUDA's runtime is not there: install the CUDA toolkit, or set "
                            "CUDA_PATH to where it is")
    endif()
    set(FSDP_WITH_HIP ON)
    set(FSDP_HIP_INCLUDE_DIR "${FSDP_CUDA_INCLUDE_DIR}")
    set(FSDP_DEVICE_DEFINITIONS FSDPI_GPU_CUDA)
    set(FSDP_DEVICE_LIBRARIES "${FSDP_CUDA_LIBRARY}" -lstdc++) # which nvcc's code for the host calls
elseif(NOT FSDP_GPU STREQUAL "hip")
    message(FATAL_ERROR "FSDP_GPU is '${FSDP_GPU}'; it is hip or cuda")
elseif(FSDP_HIP STREQUAL "AUTO" OR FSDP_HIP)
    find_path(FSDP_HIP_INCLUDE_DIR hip/hip_runtime_api.h HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES include)
    find_library(FSDP_HIP_LIBRARY amdhip64 HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES lib)
    if(FSDP_HIP_INCLUDE_DIR AND FSDP_HIP_LIBRARY)
        set(FSDP_WITH_HIP ON)
        set(FSDP_DEVICE_LIBRARIES "${FSDP_HIP_LIBRARY}")
    elseif(NOT FSDP_HIP STREQUAL "AUTO")
        message(FATAL_ERROR "FSDP_HIP is ${FSDP_HIP}, but the HIP runtime is not there: install libamdhip64-dev, or set "
                            "ROCM_PATH to where ROCm is")
    endif()
endif()
message(STATUS "GPU runtime: ${FSDP_GPU} ${FSDP_WITH_HIP}")

set(FSDP_HIP_AT_RUN_TIME OFF)
if(FSDP_WITH_HIP AND FSDP_GPU STREQUAL "hip" AND BUILD_SHARED_LIBS)
    set(FSDP_HIP_AT_RUN_TIME ON)
endif()

# HIP's functions, which load it: see kernels/hip/runtime_library.c.
function(fsdp_hip_runtime_library target include)
    add_library(${target} OBJECT "${PROJECT_SOURCE_DIR}/kernels/hip/runtime_library.c")
    fsdp_internal_code(${target})
    target_compile_options(${target} PRIVATE $<$<C_COMPILER_ID:GNU>:-fno-lto>)
    target_compile_definitions(${target} PRIVATE ${FSDP_DEVICE_DEFINITIONS} ${ARGN})
    target_include_directories(${target} SYSTEM BEFORE PRIVATE "${include}")
endfunction()

function(fsdp_link_gpu_runtime target)
    if(FSDP_HIP_AT_RUN_TIME)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:fsdp_hip_at_run_time>)
        target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
    else()
        target_link_libraries(${target} PRIVATE ${FSDP_DEVICE_LIBRARIES})
    endif()
endfunction()
