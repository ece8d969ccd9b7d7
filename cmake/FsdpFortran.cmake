# Decides whether the module of Fortran is built: FSDP_WITH_FORTRAN. With FSDP_FORTRAN=AUTO it is where there is a compiler that
# understands it and the Fortran of the MPI in use; ON makes what is missing an error. In a program compiled with sanitizers, the
# module is code that is not, so there it is left out.
#
#   fsdp_fortran_code(<target>)   warnings for a target that holds our Fortran; clang-tidy is not shown it
include(CheckLanguage)
include(CheckSourceCompiles)

set(FSDP_FORTRAN AUTO CACHE STRING "Build the module `fsdp` of Fortran: AUTO, ON or OFF")
set_property(CACHE FSDP_FORTRAN PROPERTY STRINGS AUTO ON OFF)
if(NOT FSDP_FORTRAN MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "FSDP_FORTRAN is '${FSDP_FORTRAN}'; use AUTO, ON or OFF")
endif()

set(FSDP_WITH_FORTRAN OFF)
set(why "")
string(REGEX REPLACE "mpicc([^/]*)$" "mpifort\\1" wrapper "${MPI_C_COMPILER}")
if(FSDP_FORTRAN STREQUAL "OFF")
    set(why "FSDP_FORTRAN is OFF")
elseif(FSDP_SANITIZE)
    set(why "FSDP_SANITIZE is set")
elseif(NOT wrapper MATCHES "mpifort" OR NOT EXISTS "${wrapper}")
    set(why "there is no mpifort beside ${MPI_C_COMPILER}")
else()
    if(NOT CMAKE_Fortran_COMPILER)
        unset(CMAKE_Fortran_COMPILER CACHE) # the compiler may have been installed since the last time
    endif()
    check_language(Fortran)
    if(CMAKE_Fortran_COMPILER)
        enable_language(Fortran)
        set(MPI_Fortran_COMPILER "${wrapper}" CACHE FILEPATH "MPI compiler wrapper")
        find_package(MPI COMPONENTS C Fortran)
        check_source_compiles(Fortran [[
            subroutine point(memory, array)
               use, intrinsic :: iso_c_binding
               type(c_ptr), intent(in) :: memory
               real, pointer, intent(out) :: array(..)
               select rank (array)
               rank (1)
                  call c_f_pointer(memory, array, [1])
               end select
            end subroutine
            end
            ]] FSDP_FORTRAN_HAS_SELECT_RANK SRC_EXT f90)
        if(NOT MPI_Fortran_HAVE_F90_MODULE)
            set(why "${CMAKE_Fortran_COMPILER} cannot use the module mpi of ${wrapper}")
        elseif(NOT FSDP_FORTRAN_HAS_SELECT_RANK)
            set(why "${CMAKE_Fortran_COMPILER} does not know `select rank`")
        else()
            set(FSDP_WITH_FORTRAN ON)
        endif()
    else()
        set(why "there is no Fortran compiler (package gfortran)")
    endif()
endif()

if(FSDP_WITH_FORTRAN)
    set(handles "integers")
    if(MPI_Fortran_HAVE_F08_MODULE)
        set(handles "integers and of mpi_f08")
    endif()
    message(STATUS "Fortran: ${CMAKE_Fortran_COMPILER_ID} ${CMAKE_Fortran_COMPILER_VERSION}, communicators are ${handles}")
elseif(FSDP_FORTRAN STREQUAL "ON")
    message(FATAL_ERROR "FSDP_FORTRAN is ON, but ${why}")
else()
    message(STATUS "Fortran: the module is left out, since ${why}")
endif()

function(fsdp_fortran_code target)
    set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:Fortran>:-std=f2018 -Wall -Wextra $<$<BOOL:${FSDP_WERROR}>:-Werror>>)
    endif()
endfunction()
