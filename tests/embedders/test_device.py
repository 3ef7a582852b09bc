import pytest

from saber.embedders.device import check_device, resolve_device


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:1", "mps"])
def test_known_names(name):
    check_device(name)


@pytest.mark.parametrize("name", ["gpu", "", "cuda:x", "CPU", None, 0])
def test_unknown_names_list_the_valid_ones(name):
    with pytest.raises(ValueError, match="valid: auto, cpu, cuda"):
        check_device(name)


def test_resolution_with_and_without_a_gpu(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cpu") == "cpu"
    with pytest.raises(ValueError, match="no GPU"):
        resolve_device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == "cuda"
    assert resolve_device("cuda:3") == "cuda:3"
