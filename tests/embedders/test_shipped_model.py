"""The models whose weights ship with the repository: complete, verified, and at home in their vocabulary."""

import subprocess
import sys

import numpy as np
import pytest

from saber.embedders import Content, load_embedder, load_registry
from saber.embedders.sources import locate
from saber.vocabulary import load_vocabulary

SHIPPED = ["mini-qwen3-vl", "mini-clip"]


def test_every_local_folder_ships_and_its_weights_are_pinned():
    shipped = [entry for entry in load_registry().values() if entry.folder]
    assert [entry.name for entry in shipped] == SHIPPED
    for entry in shipped:
        assert entry.sha256, f"{entry.name}: add the sha256 of its weights file to params/models.yaml"
        load_embedder(entry.name)  # raises when the folder is missing or the hash differs
        files = {path.name for path in locate(entry).iterdir()}
        assert {"README.md", "LICENSE"} <= files
        assert sum(p.stat().st_size for p in locate(entry).rglob("*") if p.is_file()) < 20e6


@pytest.mark.parametrize("name", SHIPPED)
def test_it_knows_the_words_of_the_mini_vocabulary_and_takes_ten_pairs(name):
    embedder = load_embedder(name, device="cpu")
    known = load_vocabulary("known")
    longest = sorted((o.name for o in known.objects), key=lambda name: (-len(name.split()), name))
    names = [a.name for a in known.attributes]
    contents = [
        Content(text=f"A {attribute} {o.name}") for o in known.objects for attribute in (names[0], names[-1])
    ]
    contents += [Content(text=f"An {name} kayak, and a kite") for name in names]
    contents.append(Content(text=", ".join(f"a {a} {o}" for a, o in zip(names[:10], longest, strict=False))))
    np.testing.assert_array_equal(embedder.text_flags(contents), 0)
    vectors = embedder.embed(contents[:4])
    assert vectors.shape == (4, embedder.dim)


def test_the_miniature_loads_with_nothing_of_ours(tmp_path):
    code = (
        "import sys; from sentence_transformers import SentenceTransformer;"
        "m = SentenceTransformer(sys.argv[1], device='cpu');"
        "print(m.encode(['A red cube']).shape, 'saber' in sys.modules, m.prompts['default'])"
    )
    folder = locate(load_registry()["mini-qwen3-vl"])
    run = subprocess.run(
        [sys.executable, "-I", "-c", code, str(folder)], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.stdout == "(1, 192) False Represent the user's input.\n", run.stderr


def test_the_miniature_retrieves_random_scenes_and_mis_binds_across_modalities():
    from saber.embedders.sentence_transformers_adapter import open_model
    from saber.miniature.checks import check_miniature

    model = open_model(locate(load_registry()["mini-qwen3-vl"]), "cpu")
    rows = check_miniature(model, seed=11, questions_per_count=2, n_scenes=32)
    value = rows.set_index(["measure", "pairing"])["value"]
    assert (value["R@1"] >= 95).all()
    binding = value.sort_index().drop("R@1").groupby("pairing").mean()
    assert max(binding["T->I"], binding["I->T"]) < 65 < binding["I->I"]
