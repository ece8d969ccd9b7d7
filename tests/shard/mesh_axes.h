/**
 * @file
 * Tests of fsdp_model_options.axis_strategies, which are part of test_mesh_model.c.
 */
#ifndef FSDP_TESTS_MESH_AXES_H
#define FSDP_TESTS_MESH_AXES_H

void axes_with_strategies_have_the_bits_of_one_rank(void **state);
void and_those_of_the_strategy_that_they_come_to(void **state);
void units_have_strategies_of_their_own_beside_those_of_axes(void **state);
void groups_are_along_axes_where_nodes_are_not(void **state);
void strategies_of_axes_that_do_not_fit_are_refused(void **state);
void combinations_that_there_are_not_are_refused(void **state);
void ranks_with_other_strategies_of_axes_learn_of_it(void **state);

#endif
