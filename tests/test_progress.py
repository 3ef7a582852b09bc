"""Progress bars: none in batch."""

import pytest

from saber.progress import progress_bar


@pytest.mark.parametrize(("variable", "show"), [("1", True), ("", False)])
def test_no_bar_in_batch_or_when_not_wanted(monkeypatch, capsys, variable, show):
    monkeypatch.setenv("TQDM_DISABLE", variable)
    with progress_bar(3, "images", "image", show) as bar:
        bar.update()
    assert bar.disable and capsys.readouterr().err == ""
