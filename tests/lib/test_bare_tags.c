/* Tags that say what is called: within those that an MPI has, each for one thing only, and understood by who has the same call. */
#include "lib/sync/bare_tags.h"
#include "tests/support/unit_test.h"

enum { LEAST = 32767, UCX = (1 << 23) - 1, MOST = 0x7fffffff, CALLS = 1000 };

static fsdpi_opinion opinion_of(uint64_t call, uint32_t flags)
{
    return (fsdpi_opinion){.call = call, .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_ONE_PLACE | flags};
}

static void as_many_tags_are_used_as_there_are(void **state)
{
    (void)state;
    assert_int_equal(1 << 14, fsdpi_first_bare_tag(LEAST));
    assert_int_equal(1 << 22, fsdpi_first_bare_tag(UCX));
    assert_int_equal(1 << 21, fsdpi_first_bare_tag(UCX - 1));
    assert_int_equal(1 << 30, fsdpi_first_bare_tag(MOST));
}

static void a_tag_says_what_its_sender_says(void **state)
{
    static const uint32_t FLAGS[] = {0, FSDPI_FLAG_OFFERED, FSDPI_FLAG_STILL, FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL};

    const int most[] = {UCX, MOST};

    (void)state;
    for (int m = 0; m < 2; m++) {
        const int first = fsdpi_first_bare_tag(most[m]);

        for (uint64_t call = 0; call < CALLS; call++) {
            for (int f = 0; f < 4; f++) {
                const fsdpi_opinion own = opinion_of(call, 0), said = opinion_of(call, FLAGS[f]);
                const int           tag = fsdpi_bare_tag(first, (int)call % 2, &said);

                assert_true(tag >= first && tag <= most[m]);
                assert_false(fsdpi_is_tag_of_begun(first, tag));
                const fsdpi_opinion understood = fsdpi_opinion_of_tag(first, (int)call % 2, &own, tag);
                assert_memory_equal(&said, &understood, sizeof said);
            }
        }
    }
}

static void the_first_of_several_messages_says_the_same_with_both_flags(void **state)
{
    const int first = fsdpi_first_bare_tag(UCX);

    (void)state;
    for (uint64_t call = 0; call < CALLS; call++) {
        const fsdpi_opinion usual = opinion_of(call, FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL);
        const int           two   = fsdpi_tag_of_begun(first, fsdpi_bare_tag(first, 0, &usual));

        assert_true(fsdpi_is_usual(&usual));
        assert_true(two >= fsdpi_end_of_other_tags(first) && two < first);
        assert_true(fsdpi_is_tag_of_begun(first, two));
        const fsdpi_opinion understood = fsdpi_opinion_of_tag(first, 0, &usual, two);
        assert_memory_equal(&usual, &understood, sizeof usual);
    }
}

static void the_next_agreement_on_the_same_call_has_other_tags(void **state)
{
    const int first = fsdpi_first_bare_tag(UCX);

    (void)state;
    for (uint64_t call = 0; call < CALLS; call++) {
        const fsdpi_opinion usual = opinion_of(call, FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL);
        const int           now = fsdpi_bare_tag(first, 0, &usual), next = fsdpi_bare_tag(first, 1, &usual);

        assert_true(now != next && fsdpi_tag_of_begun(first, now) != fsdpi_tag_of_begun(first, next));
    }
}

static void another_call_is_not_taken_for_this_one(void **state)
{
    const int           first = fsdpi_first_bare_tag(UCX);
    const fsdpi_opinion own   = opinion_of(7, FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL);

    (void)state;
    for (uint64_t call = 8; call < CALLS; call++) { /* of a million hashes, none of these is that of 7 */
        const fsdpi_opinion other = opinion_of(call, FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL);
        const int           tag   = fsdpi_bare_tag(first, 0, &other);

        assert_true(fsdpi_opinion_of_tag(first, 0, &own, tag).call != own.call);
        assert_true(fsdpi_opinion_of_tag(first, 0, &own, fsdpi_tag_of_begun(first, tag)).call != own.call);
    }
}

static void what_is_unusual_needs_a_head(void **state)
{
    const int           first = fsdpi_first_bare_tag(MOST);
    const fsdpi_opinion usual = opinion_of(1, FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL),
                        asks  = opinion_of(1, FSDPI_FLAG_AGAIN);
    fsdpi_opinion failed      = usual;

    (void)state;
    failed.status = FSDP_ERR_ARG;
    assert_int_equal(0, fsdpi_bare_tag(first, 0, &failed));
    assert_int_equal(0, fsdpi_bare_tag(first, 0, &asks));
    assert_false(fsdpi_is_usual(&failed));
    assert_int_equal(0, fsdpi_bare_tag(fsdpi_first_bare_tag(LEAST), 0, &usual)); /* too few tags */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_tags_are_used_as_there_are),
        cmocka_unit_test(a_tag_says_what_its_sender_says),
        cmocka_unit_test(the_first_of_several_messages_says_the_same_with_both_flags),
        cmocka_unit_test(the_next_agreement_on_the_same_call_has_other_tags),
        cmocka_unit_test(another_call_is_not_taken_for_this_one),
        cmocka_unit_test(what_is_unusual_needs_a_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
