"""saber.validate and saber.rules: a valid benchmark breaks none, each corruption is reported by its own."""

import dataclasses

import pytest

from saber.benchmark import ROLES, Benchmark, build_benchmark, write_benchmark
from saber.captions import caption, generation_caption
from saber.rules import RULES
from saber.validate import SCORING, Violation, check_benchmark, main, violations
from saber.vocabulary import appearances, load_vocabulary

VOCABULARY = load_vocabulary()
IND2, IND3, NEST4 = "ind-n02-0000", "ind-n03-0000", "nest-c000-n04"


@pytest.fixture(scope="module")
def valid():
    return build_benchmark(VOCABULARY, seed=1, questions_per_count=4, object_counts=[2, 3, 4, 5])


class Editor:
    """A benchmark whose questions and items can be replaced by name."""

    def __init__(self, benchmark):
        self.questions = {q.id: q for q in benchmark.questions}
        self.items = dict(benchmark.items)

    def item(self, question, role):
        return self.items[dict(zip(ROLES, self.ids(question), strict=True))[role]]

    def ids(self, question):
        q = self.questions[question]
        return (q.query, *q.candidates)

    def change(self, question, role, /, **fields):
        item = self.item(question, role)
        self.items[item.id] = dataclasses.replace(item, **fields)

    def change_question(self, question, **fields):
        self.questions[question] = dataclasses.replace(self.questions[question], **fields)

    def scene(self, question, role, pairs):
        """New pairs with the texts that belong to them; known attributes keep their look."""
        looks = {
            a: look
            for i in self.ids(question)
            for (a, _), look in zip(self.items[i].pairs, self.items[i].appearances, strict=True)
        }
        new = tuple(
            looks.get(a) or appearances(VOCABULARY.attribute(a), VOCABULARY.palette)[0] for a, _ in pairs
        )
        self.change(
            question,
            role,
            pairs=tuple(pairs),
            text=caption(pairs),
            appearances=new,
            generation_text=generation_caption(new, [o for _, o in pairs]),
        )

    def pairs(self, question, role):
        return self.item(question, role).pairs

    def build(self):
        return Benchmark(tuple(self.questions.values()), self.items)


def _split(pairs):
    return [a for a, _ in pairs], [o for _, o in pairs]


def _join(attributes, objects):
    return tuple(zip(attributes, objects, strict=True))


def _unused(editor, question, which):
    """A name of the vocabulary that no item of the question has."""
    used = {p[which] for i in editor.ids(question) for p in editor.items[i].pairs}
    group = (VOCABULARY.attributes, VOCABULARY.objects)[which]
    return next(x.name for x in group if x.name not in used)


def lose_an_item(e):
    del e.items[e.item(IND3, "object_swap").id]


def keep_an_extra_item(e):
    item = e.item(IND3, "query")
    e.items["extra"] = dataclasses.replace(item, id="extra", image="images/extra.png")


def say_another_role(e):
    e.change(IND3, "object_swap", role="joint_swap")


def say_another_question(e):
    e.change(IND3, "object_swap", question=IND2)


def miscount_objects(e):
    e.scene(IND3, "joint_swap", e.pairs(IND3, "joint_swap")[:2])


def repeat_an_object(e):
    attributes, objects = _split(e.pairs(IND3, "joint_swap"))
    e.scene(IND3, "joint_swap", _join(attributes, [objects[0], objects[0], objects[2]]))


def repeat_an_attribute(e):
    attributes, objects = _split(e.pairs(IND3, "attribute_swap"))
    e.scene(IND3, "attribute_swap", _join([attributes[0], attributes[1], attributes[1]], objects))


def break_a_binding_of_candidate_1(e):
    attributes, objects = _split(e.pairs(IND3, "preserved"))
    e.scene(IND3, "preserved", _join(attributes[1:] + attributes[:1], objects))


def keep_the_order_of_the_query(e):
    # all candidates as they were, but the query takes the order of candidate 1
    e.scene(IND3, "query", e.pairs(IND3, "preserved"))


def reorder_objects_of_candidate_2(e):
    first, second, *rest = e.pairs(IND3, "attribute_swap")
    e.scene(IND3, "attribute_swap", (second, first, *rest))


def keep_attributes_of_candidate_2(e):
    e.scene(IND3, "attribute_swap", e.pairs(IND3, "preserved"))


def new_attribute_in_candidate_2(e):
    attributes, objects = _split(e.pairs(IND2, "attribute_swap"))
    e.scene(IND2, "attribute_swap", _join([_unused(e, IND2, 0), attributes[1]], objects))


def reorder_attributes_of_candidate_3(e):
    first, second, *rest = e.pairs(IND3, "object_swap")
    e.scene(IND3, "object_swap", (second, first, *rest))


def keep_objects_of_candidate_3(e):
    e.scene(IND3, "object_swap", e.pairs(IND3, "preserved"))


def new_object_in_candidate_3(e):
    attributes, objects = _split(e.pairs(NEST4, "object_swap"))
    e.scene(NEST4, "object_swap", _join(attributes, [_unused(e, NEST4, 1), *objects[1:]]))


def keep_the_object_order_in_candidate_4(e):
    _, objects = _split(e.pairs(NEST4, "preserved"))
    lookup = {o: a for a, o in e.pairs(NEST4, "joint_swap")}
    e.scene(NEST4, "joint_swap", [(lookup[o], o) for o in objects])


def new_object_in_candidate_4(e):
    attributes, objects = _split(e.pairs(NEST4, "joint_swap"))
    e.scene(NEST4, "joint_swap", _join(attributes, [_unused(e, NEST4, 1), *objects[1:]]))


def replace_both_at_two_objects(e):
    kept = next(p for p in e.pairs(IND2, "joint_swap") if p in e.pairs(IND2, "query"))
    e.scene(IND2, "joint_swap", (kept, (_unused(e, IND2, 0), _unused(e, IND2, 1))))


def replace_none_at_two_objects(e):
    e.scene(IND2, "joint_swap", e.pairs(IND2, "query"))


def swap_at_two_objects(e):
    e.scene(IND2, "joint_swap", e.pairs(IND2, "object_swap"))


def repeat_an_assignment(e):
    # the assignment of candidate 2, in an order that differs from candidate 1 in objects and attributes
    first, second, third = e.pairs(IND3, "attribute_swap")
    place = [a for a, _ in e.pairs(IND3, "preserved")]
    for pairs in (
        (second, third, first),
        (third, first, second),
        (second, first, third),
        (third, second, first),
    ):
        attributes, objects = _split(pairs)
        if attributes != place and objects != [o for _, o in e.pairs(IND3, "preserved")]:
            e.scene(IND3, "joint_swap", pairs)
            return
    raise AssertionError("no such order")


def hide_the_answer_in_candidate_4(e):
    first, *rest = e.pairs(NEST4, "preserved")
    e.scene(NEST4, "joint_swap", (*rest, first))


def shuffle_the_text(e):
    e.change(IND3, "query", text=caption(e.pairs(IND3, "preserved")))


def cut_the_text(e):
    e.change(IND3, "query", text=caption(e.pairs(IND3, "query")[:2]))


def write_another_sentence(e):
    e.change(IND3, "query", text="Some things on a table")


def shuffle_the_generation_text(e):
    e.change(IND3, "query", generation_text=e.item(IND3, "preserved").generation_text)


def generate_another_look(e):
    item = e.item(IND3, "query")
    looks = ["shiny", *item.appearances[1:]]
    e.change(IND3, "query", generation_text=generation_caption(looks, [o for _, o in item.pairs]))


def write_the_wrong_article(e):
    item = e.item(IND3, "query")
    right, wrong = ("An ", "A ") if item.text.startswith("An ") else ("A ", "An ")
    e.change(IND3, "query", text=item.text.replace(right, wrong, 1))


def give_an_attribute_two_looks(e):
    question, role, place, other = next(
        (q.id, role, n, look)
        for q in e.questions.values()
        for role in ROLES
        for n, (a, _) in enumerate(e.pairs(q.id, role))
        for look in appearances(VOCABULARY.attribute(a), VOCABULARY.palette)
        if look != e.item(q.id, role).appearances[n] and role != "joint_swap"
    )
    item = e.item(question, role)
    looks = list(item.appearances)
    looks[place] = other
    text = generation_caption(looks, [o for _, o in item.pairs])
    e.change(question, role, appearances=tuple(looks), generation_text=text)


def name_no_image(e):
    e.change(IND3, "query", image=None)


def share_an_image(e):
    e.change(IND3, "query", image=e.item(IND3, "preserved").image)


def forget_the_chain(e):
    # a whole chain, so that no other chain misses anything
    for n in (2, 3, 4, 5):
        e.change_question(f"nest-c001-n{n:02d}", chain=None)


def chain_an_independent_question(e):
    e.change_question(IND3, chain="c000")


def skip_a_step(e):
    e.change_question(NEST4, chain="c099")


def repeat_a_step(e):
    # the other chain lends its step, with the scenes of this one
    e.change_question("nest-c001-n04", chain="c000")
    for role in ROLES:
        e.scene("nest-c001-n04", role, e.pairs(NEST4, role))


def lose_a_binding_on_the_way(e):
    # step 3 becomes a question of its own: one object is exchanged in all of its items
    question = "nest-c000-n03"
    old = e.pairs("nest-c000-n02", "query")[0][1]
    new = next(
        o.name
        for o in VOCABULARY.objects
        if all(o.name not in dict(map(reversed, i.pairs)) for i in e.items.values())
    )
    for role in ROLES:
        e.scene(question, role, [(a, new if o == old else o) for a, o in e.pairs(question, role)])


def drop_a_question(e):
    for item_id in e.ids(IND3):
        del e.items[item_id]
    del e.questions[IND3]


def name_an_unknown_object(e):
    old = e.pairs(IND3, "query")[0][1]
    for role in ROLES:
        attributes, objects = _split(e.pairs(IND3, role))
        e.scene(IND3, role, _join(attributes, ["gizmo" if o == old else o for o in objects]))


def name_an_unknown_attribute(e):
    old = e.pairs(IND3, "query")[0][0]
    for role in ROLES:
        item = e.item(IND3, role)
        pairs = tuple(("fancy" if a == old else a, o) for a, o in item.pairs)
        e.change(IND3, role, pairs=pairs, text=caption(pairs))


def invent_an_appearance(e):
    old = e.pairs(IND3, "query")[0][0]
    for role in ROLES:
        item = e.item(IND3, role)
        looks = tuple(
            "shiny" if a == old else x for (a, _), x in zip(item.pairs, item.appearances, strict=True)
        )
        text = generation_caption(looks, [o for _, o in item.pairs])
        e.change(IND3, role, appearances=looks, generation_text=text)


CORRUPTIONS = [
    (lose_an_item, "item-missing", IND3),
    (keep_an_extra_item, "item-unused", IND3),
    (say_another_role, "item-place", IND3),
    (say_another_question, "item-place", IND3),
    (miscount_objects, "object-count", IND3),
    (repeat_an_object, "distinct-objects", IND3),
    (repeat_an_attribute, "distinct-attributes", IND3),
    (break_a_binding_of_candidate_1, "candidate-1-preserves", IND3),
    (keep_the_order_of_the_query, "candidate-1-reorders", IND3),
    (reorder_objects_of_candidate_2, "attribute-swap-keeps-object-order", IND3),
    (keep_attributes_of_candidate_2, "attribute-swap-permutes", IND3),
    (new_attribute_in_candidate_2, "attribute-swap-permutes", IND2),
    (reorder_attributes_of_candidate_3, "object-swap-keeps-attribute-order", IND3),
    (keep_objects_of_candidate_3, "object-swap-permutes", IND3),
    (new_object_in_candidate_3, "object-swap-permutes", NEST4),
    (keep_the_object_order_in_candidate_4, "joint-swap-permutes-both", NEST4),
    (new_object_in_candidate_4, "joint-swap-permutes-both", NEST4),
    (replace_both_at_two_objects, "two-object-exception", IND2),
    (replace_none_at_two_objects, "two-object-exception", IND2),
    (swap_at_two_objects, "two-object-exception", IND2),
    (repeat_an_assignment, "assignments-distinct", IND3),
    (hide_the_answer_in_candidate_4, "unique-answer", NEST4),
    (shuffle_the_text, "text-matches-pairs", IND3),
    (cut_the_text, "text-matches-pairs", IND3),
    (write_another_sentence, "text-matches-pairs", IND3),
    (shuffle_the_generation_text, "generation-text-matches-pairs", IND3),
    (generate_another_look, "generation-text-matches-pairs", IND3),
    (write_the_wrong_article, "article", IND3),
    (give_an_attribute_two_looks, "attribute-instantiated-once", None),
    (name_no_image, "image-missing", IND3),
    (share_an_image, "image-shared", None),
    (forget_the_chain, "chain-named", "nest-c001-n02"),
    (chain_an_independent_question, "chain-named", IND3),
    (skip_a_step, "chain-contiguous", "nest-c000-n02"),
    (repeat_a_step, "chain-contiguous", "nest-c000-n02"),
    (lose_a_binding_on_the_way, "chain-adds-one-binding", "nest-c000-n03"),
    (drop_a_question, "counts", ""),
    (name_an_unknown_object, "unknown-object", IND3),
    (name_an_unknown_attribute, "unknown-attribute", IND3),
    (invent_an_appearance, "unknown-appearance", IND3),
]


def test_a_valid_benchmark_has_no_violation(valid):
    assert violations(valid, VOCABULARY) == []
    assert violations(Editor(valid).build(), VOCABULARY) == []


@pytest.mark.parametrize(
    ("corrupt", "rule", "question"), CORRUPTIONS, ids=lambda x: getattr(x, "__name__", None)
)
def test_each_corruption_is_reported_by_its_rule_alone(valid, corrupt, rule, question):
    editor = Editor(valid)
    corrupt(editor)
    found = violations(editor.build(), VOCABULARY)
    assert {v.rule for v in found} == {rule}, [str(v) for v in found]
    assert question is None or found[0].question == question
    assert all(str(v).startswith(v.question) and v.message for v in found)


def test_every_rule_is_corrupted_here():
    # file-format is tested on files below
    assert {rule for _, rule, _ in CORRUPTIONS} | {"file-format"} == set(RULES)


def test_names_are_checked_only_with_a_vocabulary(valid):
    editor = Editor(valid)
    name_an_unknown_object(editor)
    assert violations(editor.build()) == []
    assert {v.rule for v in violations(valid, VOCABULARY.known())} >= {"unknown-object", "unknown-attribute"}


def test_what_releases_may_lack_is_no_violation(valid):
    bare = {
        i: dataclasses.replace(x, generation_text="", appearances=(), image=None, seed=0, flipped=False)
        for i, x in valid.items.items()
    }
    assert violations(Benchmark(valid.questions, bare), VOCABULARY) == []
    # a full stop, lower case and another comma are no violation either
    other = {
        i: dataclasses.replace(
            x, text=x.text[0].lower() + x.text[1:].replace(", and", " and") + ".", appearances=()
        )
        for i, x in valid.items.items()
    }
    assert violations(Benchmark(valid.questions, other), VOCABULARY) == []


def test_appearances_are_read_off_the_generation_text(valid):
    editor = Editor(valid)
    invent_an_appearance(editor)
    for item in list(editor.items.values()):
        editor.items[item.id] = dataclasses.replace(item, appearances=())
    assert {v.rule for v in violations(editor.build(), VOCABULARY)} == {"unknown-appearance"}


@pytest.fixture
def folder(valid, tmp_path):
    placed = write_benchmark(valid, tmp_path / "saber")
    (placed.folder / "images").mkdir()
    for item in placed.items.values():
        placed.image_path(item).write_bytes(b"picture")
    return placed.folder


def test_images_are_looked_for_on_disk(valid, folder):
    assert violations(folder) == []
    first, second = [valid.items[i] for i in valid.questions[0].candidates[:2]]
    (folder / first.image).unlink()
    (folder / second.image).write_bytes(b"")
    found = violations(folder)
    assert [(v.rule, v.question) for v in found] == [("image-missing", first.question)] * 2
    assert first.image in found[0].message and second.image in found[1].message
    assert violations(folder, images=False) == []


def test_malformed_files_are_one_violation(folder):
    (folder / "items.jsonl").write_text('{"id": "x"}\n', encoding="utf-8")
    (found,) = violations(folder)
    assert found.rule == "file-format" and "line 1: field 'question' is missing" in str(found)
    (missing,) = violations(folder / "nowhere")
    assert missing == Violation("file-format", "", missing.message) and "does not exist" in missing.message


def test_command_line_of_a_valid_folder(folder, capsys):
    assert main([str(folder), "--vocabulary", "full"]) == 0
    assert capsys.readouterr().out == f"{folder}: no violations of {len(RULES)} rules\n"


def test_command_line_lists_violations_by_rule(valid, folder, capsys):
    editor = Editor(valid)
    skip_a_step(editor)
    for question in editor.questions.values():
        if question.subset == "independent":
            editor.change(question.id, "query", text="Nothing")
    write_benchmark(editor.build(), folder)
    assert main([str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"text-matches-pairs: 8 - {RULES['text-matches-pairs']}"
    assert lines[1].startswith("  ind-n02-0000: ind-n02-0000-query: not a caption")
    assert len([x for x in lines if "not a caption" in x]) == 3
    assert any(x.startswith("chain-contiguous: 2 - ") for x in lines)
    assert lines[-1] == f"{folder}: 10 violations of {len(RULES)} rules"
    assert main([str(folder), "--all"]) == 1
    assert capsys.readouterr().out.count("not a caption") == 8


def test_command_line_without_images(folder, capsys):
    for path in (folder / "images").iterdir():
        path.unlink()
    assert main([str(folder), "--no-images"]) == 0
    assert main([str(folder)]) == 1
    assert "image-missing: 80" in capsys.readouterr().out


def test_full_size_is_valid():
    assert violations(build_benchmark(VOCABULARY, seed=3), VOCABULARY) == []
    known = VOCABULARY.known()
    assert violations(build_benchmark(known, seed=4, questions_per_count=10), known) == []


def test_a_check_raises_with_the_first_violations_of_the_rules_it_is_asked_for():
    benchmark = build_benchmark(load_vocabulary("known"), 1, 2, [3])
    check_benchmark(benchmark, images=False)
    question = benchmark.questions[0]
    preserved, swapped = (benchmark.items[i] for i in question.candidates[:2])
    wrong = dataclasses.replace(preserved, pairs=swapped.pairs, text=swapped.text)
    broken = dataclasses.replace(benchmark, items={**benchmark.items, wrong.id: wrong})
    with pytest.raises(ValueError, match=rf"candidate-1-preserves.*{question.id}|{question.id}.*preserves"):
        check_benchmark(broken, SCORING, images=False)
    check_benchmark(broken, ["article"], images=False)
