import hashlib
import sys

import pytest

from saber.embedders import ModelUnavailable
from saber.embedders import sources as s
from saber.embedders.registry import ModelEntry

SHA = hashlib.sha256(b"weights").hexdigest()
HUB = {"id": "owner/model", "revision": "b" * 40, "files": ("model.safetensors", "sub/config.json")}


def entry(**more):
    return ModelEntry("m", "sentence_transformers", ("text",), "MIT", **more)


def model_folder(folder, weights=b"weights"):
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "sub" / "config.json").write_text("{}")
    return folder


class Hub:
    """A stand-in of the Hub client that notes what it is asked for."""

    def __init__(self, snapshot):
        self.snapshot, self.asked = snapshot, []

    def __call__(self, repository, file, revision):
        self.asked.append((repository, file, revision))
        return str(self.snapshot / file)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    hub = Hub(model_folder(tmp_path / "hub" / "snapshots" / ("b" * 40)))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub)
    return hub


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Function (weights) -> folder: an importable package ``weights_of_m`` with a model inside."""

    def make(weights):
        root = tmp_path / "site"
        folder = model_folder(root / "weights_of_m" / "model", weights)
        (root / "weights_of_m" / "__init__.py").write_text("raise ImportError('must not be imported')")
        monkeypatch.setattr(sys, "path", [str(root), *sys.path])
        return folder

    return make


def test_folder_is_taken_relative_to_the_repository(tmp_path, monkeypatch, hub):
    folder = model_folder(tmp_path / "models" / "m é")
    monkeypatch.setattr(s, "REPO", tmp_path)
    assert s.locate(entry(folder="models/m é", **HUB)) == folder
    assert s.locate(entry(folder=str(folder), sha256=SHA)) == folder
    assert hub.asked == []


def test_a_model_that_is_not_made_yet_names_its_notebook(tmp_path):
    for folder in (None, str(tmp_path)):
        with pytest.raises(
            ModelUnavailable, match="notebook 03_finetuning makes it, in the profile's outputs"
        ):
            s.locate(entry(folder=folder, made_by="03_finetuning"))


def test_wrong_weights_in_a_named_folder_are_an_error(tmp_path, hub):
    folder = model_folder(tmp_path / "m", b"other")
    with pytest.raises(ModelUnavailable, match=f"not the file the registry names.*expected {SHA}"):
        s.locate(entry(folder=str(folder), sha256=SHA, **HUB))
    assert hub.asked == []


def test_package_is_used_without_being_imported(package, hub):
    folder = package(b"weights")
    assert s.locate(entry(package="weights_of_m/model", sha256=SHA, **HUB)) == folder
    assert hub.asked == [] and "weights_of_m" not in sys.modules


def test_package_with_other_weights_is_passed_over_for_the_hub(package, hub):
    package(b"changed")
    with pytest.warns(UserWarning, match="the package is passed over"):
        found = s.locate(entry(package="weights_of_m/model", sha256=SHA, **HUB))
    assert found == hub.snapshot
    assert hub.asked == [("owner/model", file, "b" * 40) for file in HUB["files"]]


def test_missing_package_and_empty_folder_lead_to_the_hub(tmp_path, hub):
    absent = entry(package="no_such_package_at_all/model", folder=str(tmp_path / "none"), sha256=SHA, **HUB)
    assert s.locate(absent) == hub.snapshot


def test_snapshot_folder_is_found_from_a_file_in_a_subfolder(hub):
    assert s.fetch("m", "owner/model", "b" * 40, ("sub/config.json",)) == hub.snapshot


def test_hub_file_with_another_hash(hub):
    with pytest.raises(ModelUnavailable, match="SHA-256"):
        s.locate(entry(sha256="0" * 64, **HUB))


def test_offline_says_what_was_tried_and_how_to_get_it(tmp_path, monkeypatch):
    def offline(*args, **kwargs):
        raise ConnectionError("cannot reach the server\nwith many details")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", offline)
    with pytest.raises(ModelUnavailable) as caught:
        s.locate(entry(folder=str(tmp_path), package="no_such_package_at_all/model", **HUB))
    message = str(caught.value)
    assert "no weights in the folder" in message and "no_such_package_at_all is not installed" in message
    assert "cannot reach the server" in message and "many details" not in message
    assert f"hf download owner/model model.safetensors sub/config.json --revision {'b' * 40}" in message


def test_nothing_but_a_folder_that_is_empty(tmp_path):
    with pytest.raises(ModelUnavailable, match="model 'm': no weights in the folder"):
        s.locate(entry(folder=str(tmp_path)))


def test_file_digests_follow_the_list_or_take_all(tmp_path):
    folder = model_folder(tmp_path / "m")
    (folder / "extra.json").write_text("1")
    assert list(s.file_digests(entry(**HUB), folder)) == ["model.safetensors", "sub/config.json"]
    assert list(s.file_digests(entry(), folder)) == ["extra.json", "model.safetensors", "sub/config.json"]
    assert s.file_digests(entry(), folder)["model.safetensors"] == SHA
