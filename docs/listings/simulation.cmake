cmake_minimum_required(VERSION 3.25)
project(simulation LANGUAGES C)

find_package(fsdp REQUIRED) # where it is no folder of the system: cmake -DCMAKE_PREFIX_PATH=PREFIX
add_executable(simulation simulation.c)
target_link_libraries(simulation PRIVATE fsdp::fsdp m)
