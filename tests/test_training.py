import pytest
import torch

from saber.training import make_optimizer, schedule, set_learning_rate


def test_schedule_warms_up_stays_and_decays():
    values = [schedule(step, 1000) for step in range(1000)]
    assert values[0] < 0.02 and values[100] == values[299] == 1
    assert values[-1] == pytest.approx(0.03, abs=0.01)
    assert values[:60] == sorted(values[:60]) and values[300:] == sorted(values[300:], reverse=True)


def test_only_matrices_decay_and_all_groups_take_the_rate():
    matrix, vector, scalar = (torch.nn.Parameter(torch.ones(shape)) for shape in ((2, 2), (2,), ()))
    optimizer = make_optimizer([matrix, vector, scalar])
    set_learning_rate(optimizer, 0.5)
    for parameter in (matrix, vector, scalar):
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert torch.allclose(matrix, torch.full((2, 2), 1 - 0.5 * 0.02))
    assert (vector == 1).all() and scalar == 1
