# Finds MPI as FSDP_MPI says and sets FSDP_MPI_FLAVOUR to what was found: openmpi, mpich (or one derived from it), other.
#
# Debian keeps several MPIs side by side as mpicc.openmpi and mpicc.mpich, and `mpicc` is one of them by chance of
# installation. `auto` takes Open MPI's where such a name stands beside the `mpicc` on the path, else that `mpicc`.
include(CheckSymbolExists)

if(NOT FSDP_MPI MATCHES "^(auto|openmpi|mpich)$")
    message(FATAL_ERROR "FSDP_MPI is '${FSDP_MPI}'; use auto, openmpi or mpich")
endif()

if(NOT MPI_C_COMPILER)
    if(FSDP_MPI STREQUAL "auto")
        set(wanted openmpi)
    else()
        set(wanted ${FSDP_MPI})
    endif()
    find_program(FSDP_DEFAULT_MPICC mpicc)
    mark_as_advanced(FSDP_DEFAULT_MPICC)
    cmake_path(GET FSDP_DEFAULT_MPICC PARENT_PATH folder)
    if(EXISTS "${folder}/mpicc.${wanted}" AND EXISTS "${folder}/mpiexec.${wanted}")
        set(MPI_C_COMPILER "${folder}/mpicc.${wanted}" CACHE FILEPATH "MPI compiler wrapper")
        set(MPIEXEC_EXECUTABLE "${folder}/mpiexec.${wanted}" CACHE FILEPATH "MPI launcher")
    endif()
endif()

find_package(MPI COMPONENTS C)
if(NOT MPI_C_FOUND)
    message(FATAL_ERROR "No MPI for C was found. cmake/dependencies.sh names and installs the packages; "
                        "an MPI elsewhere is chosen with -DMPI_C_COMPILER=/path/to/mpicc")
endif()

set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
check_symbol_exists(OPEN_MPI mpi.h FSDP_MPI_IS_OPENMPI)
check_symbol_exists(MPICH_VERSION mpi.h FSDP_MPI_IS_MPICH)
unset(CMAKE_REQUIRED_LIBRARIES)
if(FSDP_MPI_IS_OPENMPI)
    set(FSDP_MPI_FLAVOUR openmpi)
elseif(FSDP_MPI_IS_MPICH)
    set(FSDP_MPI_FLAVOUR mpich)
else()
    set(FSDP_MPI_FLAVOUR other)
endif()

# What the library's headers say to a program compiled with another MPI: FSDP_MPI_NAME, and the preprocessor's condition.
set(FSDP_MPI_NAME_openmpi "Open MPI")
set(FSDP_MPI_NAME_mpich "MPICH")
set(FSDP_MPI_NAME_other "an MPI unknown to it")
set(FSDP_MPI_NAME "${FSDP_MPI_NAME_${FSDP_MPI_FLAVOUR}}")
set(FSDP_MPI_IS_ANOTHER_openmpi "!defined(OPEN_MPI)")
set(FSDP_MPI_IS_ANOTHER_mpich "defined(OPEN_MPI)")
set(FSDP_MPI_IS_ANOTHER_other "defined(OPEN_MPI) || defined(MPICH_VERSION)")
set(FSDP_MPI_IS_ANOTHER "${FSDP_MPI_IS_ANOTHER_${FSDP_MPI_FLAVOUR}}")
configure_file(cmake/built_with_mpi.h.in include/fsdp/built_with_mpi.h @ONLY)
message(STATUS "MPI: ${FSDP_MPI_FLAVOUR}, started with ${MPIEXEC_EXECUTABLE}")

if(NOT FSDP_MPI STREQUAL "auto" AND NOT FSDP_MPI STREQUAL FSDP_MPI_FLAVOUR)
    message(FATAL_ERROR "FSDP_MPI is '${FSDP_MPI}', but the MPI found is '${FSDP_MPI_FLAVOUR}' "
                        "(MPI_C_COMPILER=${MPI_C_COMPILER})")
endif()
