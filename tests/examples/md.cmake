# 06_molecular_dynamics. What needs LAMMPS, Debian's liblammps-dev, is skipped where the program is not built.
fsdp_unit_test(NAME examples.md_potential SOURCES test_md_potential.c QUICK)
target_link_libraries(test_examples_md_potential PRIVATE md_potential)
