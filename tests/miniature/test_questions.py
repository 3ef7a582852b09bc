"""Questions of trained and of held-out pairs: sound by SABER's rules, and each part what it says."""

from itertools import chain

import pytest

from saber.miniature.language import any_held_out
from saber.miniature.questions import PARTS, make_questions
from saber.validate import violations
from saber.vocabulary import load_vocabulary


@pytest.fixture(scope="module", params=PARTS)
def made(request):
    return request.param, make_questions(request.param, seed=4, questions_per_count=3)


def items_of(benchmark, question):
    return [benchmark.items[i] for i in (question.query, *question.candidates)]


def test_questions_of_two_to_ten_objects_follow_the_rules(made):
    _, benchmark = made
    assert [q.n_objects for q in benchmark.questions] == [n for n in range(2, 11) for _ in range(3)]
    assert len(benchmark.items) == 5 * 27
    assert {q.subset for q in benchmark.questions} == {"independent"}
    found = violations(benchmark, load_vocabulary("known"), images=False)
    # nested questions are missing on purpose
    assert [v for v in found if v.rule != "counts"] == []


def test_held_out_pairs_are_where_they_belong(made):
    part, benchmark = made
    for question in benchmark.questions:
        query, right, *wrong = items_of(benchmark, question)
        if part == "trained":
            assert not any(any_held_out(item.pairs) for item in (query, right, *wrong))
        else:
            assert all(any_held_out([pair]) for item in (query, right) for pair in item.pairs)


def test_wrong_bindings_of_held_out_questions_were_mostly_seen():
    benchmark = make_questions("held out", seed=4, questions_per_count=3)
    pairs = [
        pair
        for question in benchmark.questions
        for item in items_of(benchmark, question)[2:]
        for pair in set(item.pairs) - set(benchmark.items[question.query].pairs)
    ]
    assert sum(not any_held_out([pair]) for pair in pairs) > len(pairs) / 2 > 100


def test_a_question_depends_on_seed_part_count_and_number_alone(made):
    part, benchmark = made
    fewer = make_questions(part, seed=4, questions_per_count=2, object_counts=(7, 3))
    assert [q.n_objects for q in fewer.questions] == [7, 7, 3, 3]
    questions = {q.id: q for q in benchmark.questions}
    for question in fewer.questions:
        assert questions[question.id] == question
        assert items_of(fewer, question) == items_of(benchmark, question)
    other = make_questions(part, seed=5, questions_per_count=2, object_counts=(7, 3))
    assert [q.id for q in other.questions] == [q.id for q in fewer.questions]
    assert other.queries[0].pairs != fewer.queries[0].pairs


def test_queries_vary_and_the_parts_share_no_id():
    parts = [make_questions(part, 0, 4, (2, 3)) for part in PARTS]
    for benchmark in parts:
        assert len({item.pairs for item in benchmark.queries}) == 8
    ids = list(chain.from_iterable(benchmark.items for benchmark in parts))
    assert len(ids) == len(set(ids)) == 2 * 8 * 5


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match="unknown part 'seen'; choose from trained, held out"):
        make_questions("seen", 0, 1)
