# The CMakeLists.txt of a program that uses libfsdp; test_install.sh puts it beside its source.
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES ${LANGUAGE})
find_package(fsdp 0.1 REQUIRED)
add_executable(consumer ${SOURCE})
target_link_libraries(consumer PRIVATE fsdp::fsdp)
