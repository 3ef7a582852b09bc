"""What the process may use."""

from saber.machine import cores


def test_cores_is_at_least_one():
    assert cores() >= 1
