"""What the process may use."""

import pytest
import torch

from saber.machine import all_cores, cores


def test_cores_is_at_least_one():
    assert cores() >= 1


def test_torch_uses_all_cores_within_the_block_only():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), all_cores():
        assert torch.get_num_threads() == cores()
        raise KeyError
    assert torch.get_num_threads() == before
