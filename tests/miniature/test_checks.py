"""The first look: a model that sees bindings in texts only gets all of those right, and ties on images."""

import numpy as np
import pytest

from saber.captions import pairs_of_caption
from saber.miniature.checks import check_miniature
from saber.miniature.language import load_language


class TextBinder:
    """Unit vectors of a caption's bindings; one and the same vector for every image."""

    def __init__(self):
        language = load_language()
        pairs = [(a, o) for a in language.all_attributes() for o in language.all_objects()]
        self.column = {pair: i for i, pair in enumerate(pairs)}
        self.prompts = set()

    def encode(self, inputs, prompt, batch_size, show_progress_bar):
        self.prompts.add(prompt)
        rows = np.zeros((len(inputs), len(self.column) + 1), np.float32)
        for row, item in zip(rows, inputs, strict=True):
            if isinstance(item, str):
                row[[self.column[pair] for pair in pairs_of_caption(item)]] = 1
            else:
                assert item["image"].size == (192, 192)
                row[-1] = 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def measured():
    model = TextBinder()
    rows = check_miniature(model, seed=3, questions_per_count=1, n_scenes=6)
    return model, rows.set_index(["measure", "pairing"])


def test_every_measure_and_pairing_has_a_row_with_its_n(measured):
    model, rows = measured
    assert model.prompts == {"Represent the user's input."}
    assert len(rows) == 12 and set(rows.loc["R@1", "n"]) == {6}
    assert set(rows.loc["trained pairs", "n"]) == set(rows.loc["held out pairs", "n"]) == {9}
    assert ((rows["low"] <= rows["value"]) & (rows["value"] <= rows["high"])).all()


def test_bindings_in_text_are_all_that_this_model_sees(measured):
    _, rows = measured
    for part in ("trained pairs", "held out pairs"):
        assert rows.loc[(part, "T->T"), "value"] == 100
        assert rows.loc[(part, "I->I"), "value"] == rows.loc[(part, "T->I"), "value"] == 25
    assert rows.loc[("R@1", "T->T"), "value"] == 100
    assert rows.loc[("R@1", "I->I"), "value"] == pytest.approx(100 / 6)
