"""The run: it repeats to the byte, is taken up where it was killed, and changes only what a stage trains."""

import re
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from saber.files import file_digest
from saber.miniature import __main__ as command
from saber.miniature import train as training
from saber.miniature.stages import Losses
from saber.miniature.train import CONTROLS, Recipe, Stage, Trainer, control, train

TINY = Recipe(
    seed=3,
    stages=(Stage("dense", 2, 1, 1e-3), Stage("generative", 2, 1, 1e-3), Stage("contrastive", 2, 2, 1e-3)),
    aligned=0.5,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train") / "mini é"
    return folder, train(folder, TINY, workers=0)


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_killed_run_is_taken_up_and_the_bytes_are_the_same(trained, tmp_path, monkeypatch, capsys):
    folder, digest = trained
    generative, steps = Losses.generative, []

    def killed(self, *arguments, **options):
        steps.append(1)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return generative(self, *arguments, **options)

    again = tmp_path / "again"
    with monkeypatch.context() as patch:
        patch.setattr(Losses, "generative", killed)
        with pytest.raises(KeyboardInterrupt):
            train(again, TINY, workers=1)
    assert not again.exists()
    capsys.readouterr()
    # the stages that were not done are trained, by another number of workers
    assert train(again, TINY, workers=0) == digest == file_digest(again / "model.safetensors")
    printed = capsys.readouterr().out
    assert "dense: taken from dense-" in printed and "generative 2/2" in printed
    assert "dense 2/2" not in printed and "generative: taken" not in printed
    assert content(again) == content(folder)


def test_a_run_killed_within_a_stage_goes_on_from_its_last_kept_step(trained, tmp_path, monkeypatch, capsys):
    folder, digest = trained
    again, loss_of, steps = tmp_path / "again", Losses.contrastive, []
    work = again.with_name("again-work")
    work.mkdir()
    for path in folder.with_name(folder.name + "-work").glob("*.pt"):
        if not path.name.startswith("contrastive"):
            (work / path.name).write_bytes(path.read_bytes())

    def killed(self, batch):
        steps.append(batch)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return loss_of(self, batch)

    monkeypatch.setattr(training, "KEEP_EVERY", 1)
    monkeypatch.setattr(Losses, "contrastive", killed)
    with pytest.raises(KeyboardInterrupt):
        train(again, TINY, workers=0)
    assert [p.name.count("contrastive") for p in sorted(work.glob("*.part.pt"))] == [1]
    capsys.readouterr()
    assert train(again, TINY, workers=1) == digest
    assert len(steps) == 3 and steps[1].captions == steps[2].captions
    assert "contrastive: goes on after step 1" in capsys.readouterr().out
    assert len(list(work.iterdir())) == 3 and not list(work.glob("*.part.pt"))


def test_a_finished_run_is_taken_up_as_a_whole(trained, monkeypatch):
    folder, digest = trained
    monkeypatch.setattr(Trainer, "run", None)
    assert train(folder, TINY, workers=0) == digest


def test_training_changes_the_weights_of_every_part(trained):
    folder, _ = trained
    (last,) = folder.with_name(folder.name + "-work").glob("contrastive-*.pt")
    end, start = torch.load(last)["model"], Trainer(TINY).network.model.state_dict()
    saved = load_file(folder / "model.safetensors")
    assert end.keys() == start.keys() == saved.keys()
    assert all(torch.equal(saved[name], end[name].half()) for name in end)
    assert [name for name in end if torch.equal(start[name], end[name])] == []


@pytest.fixture
def recorded(monkeypatch):
    """The logic of `train` without its work: the stages that would be trained."""
    done = []

    def run(self, stage, workers, part):
        done.append((stage.name, workers))
        assert not part.exists() and stage.name in part.name
        with torch.no_grad():
            self.losses.temperature += 1

    monkeypatch.setattr(Trainer, "run", run)
    monkeypatch.setattr(
        training, "save_model", lambda model, *rest: done.append(("save", model.training)) or "digest"
    )
    return done


def test_another_recipe_shares_the_stages_that_it_has_in_common(tmp_path, recorded):
    def trained_by(recipe):
        recorded.clear()
        assert train(tmp_path / "mini", recipe, workers=2) == "digest"
        assert recorded.pop() == ("save", False) and all(workers == 2 for _, workers in recorded)
        return [name for name, _ in recorded]

    everything = ["dense", "generative", "contrastive"]
    dense, generative, contrastive = TINY.stages
    assert trained_by(TINY) == everything
    assert trained_by(TINY) == []
    assert trained_by(replace(TINY, seed=4)) == everything
    assert trained_by(replace(TINY, aligned=0.6)) == everything
    assert trained_by(replace(TINY, tags=("text",))) == everything[1:]
    assert trained_by(replace(TINY, noise=0.5)) == everything[2:]
    assert trained_by(replace(TINY, frozen_layers=3)) == everything[2:]
    assert trained_by(control(TINY, "contrastive-only")) == ["contrastive"]
    faster = replace(TINY, stages=(dense, replace(generative, learning_rate=2e-3), contrastive))
    assert trained_by(faster) == everything[1:]
    assert trained_by(TINY) == []


def test_another_renderer_trains_anew(tmp_path, recorded, monkeypatch):
    train(tmp_path / "mini", TINY)
    recorded.clear()
    monkeypatch.setattr(training.SpritesBackend, "fingerprint", "other")
    train(tmp_path / "mini", TINY)
    assert [name for name, _ in recorded] == ["dense", "generative", "contrastive", "save"]


def test_a_checkpoint_brings_the_scales_of_the_losses_along():
    one, two = Trainer(TINY), Trainer(replace(TINY, seed=9))
    with torch.no_grad():
        one.losses.tag_scale += 2
    two.load(one.state())
    assert two.losses.tag_scale == one.losses.tag_scale != Trainer(TINY).losses.tag_scale
    assert torch.equal(two.network.words, one.network.words)


def test_controls_change_the_recipe_in_one_point():
    recipe = Recipe(seed=5)
    assert control(recipe, "none") == recipe
    assert control(recipe, "text-tags") == replace(recipe, tags=("text",))
    assert control(recipe, "image-tags") == replace(recipe, tags=("image",))
    assert control(recipe, "no-tags") == replace(recipe, tags=())
    assert control(recipe, "clean-captions") == replace(recipe, noise=0.0)
    only = control(recipe, "contrastive-only")
    assert [s.name for s in only.stages] == ["dense", "contrastive"]
    assert replace(only, stages=recipe.stages) == recipe
    for name in CONTROLS:
        control(recipe, name)
    with pytest.raises(ValueError, match="unknown control 'tagless'; choose from none, contrastive-only"):
        control(recipe, "tagless")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_run(bad, tmp_path, monkeypatch):
    dense = Losses.dense

    def spoiled(self, scenes):
        loss, figures = dense(self, scenes)
        return loss * bad, figures

    monkeypatch.setattr(Losses, "dense", spoiled)
    with pytest.raises(FloatingPointError, match=f"the loss of stage dense is {bad} at step 1"):
        train(tmp_path / "mini", TINY, workers=0)
    assert not list(tmp_path.rglob("*.pt")) and not (tmp_path / "mini").exists()


@pytest.mark.parametrize(("number", "frozen_layers"), [(0, 3), (1, 3), (2, 3), (2, 0)])
def test_a_stage_changes_nothing_but_what_it_trains(number, frozen_layers, tmp_path):
    stage = replace(TINY.stages[number], n_batches=1)
    trainer = Trainer(replace(TINY, frozen_layers=frozen_layers))
    named = {**dict(trainer.network.model.named_parameters()), **dict(trainer.losses.named_parameters())}
    before = {name: p.detach().clone() for name, p in named.items()}
    trainer.run(stage, 0, tmp_path / "part.pt")
    changed = {name for name, p in named.items() if not torch.equal(p, before[name])}
    trained = {id(p) for p in trainer.trained(stage)}
    allowed = {name for name, p in named.items() if id(p) in trained}
    assert len(allowed) == len(trained)
    # biases and norms may by chance stand still in one short step, matrices cannot
    assert {name for name in allowed if named[name].ndim > 1} <= changed <= allowed
    tower = {name for name in named if name.startswith("visual.")}
    decoder = {name for name in named if name.startswith("language_model.")}
    lower = {name for name in decoder if re.search(r"embed_tokens|layers\.[012]\.", name)}
    assert len(lower) == 1 + len(decoder - lower - {"language_model.norm.weight"})
    expected = {
        (0, 3): {"dense_scale", "language_model.embed_tokens.weight"} | tower,
        (1, 3): {"tag_scale"} | decoder | {name for name in tower if "merger" in name},
        (2, 3): {"temperature"} | decoder - lower,
        (2, 0): {"temperature"} | decoder,
    }
    assert allowed == expected[number, frozen_layers]
    assert {name for name, p in named.items() if p.requires_grad} == allowed


def test_each_stage_is_planned_with_its_own_keys():
    trainer = Trainer(TINY)
    keys = set()
    for stage in TINY.stages:
        make, arguments, _ = trainer.plan(stage)
        assert make.__name__ == f"{stage.name}_batch" and len(arguments) == stage.n_batches
        assert all(a[0] == stage.batch_size and a[-1][0] == TINY.seed for a in arguments)
        keys |= {a[-1] for a in arguments}
    assert len(keys) == 6
    only = control(TINY, "contrastive-only")
    assert trainer.plan(only.stages[1])[1] == trainer.plan(TINY.stages[2])[1]


def test_the_command_trains_the_asked_recipe(tmp_path, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(training, "train", lambda *a: calls.append(a) or "d1g3st")
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--folder", "a b", "--seed", "2", "--control", "no-tags", "--workers", "0"]
    monkeypatch.setattr(sys, "argv", ["saber.miniature", *arguments])
    command.main()
    assert calls == [((tmp_path / "a b").resolve(), Recipe(seed=2, tags=()), 0)]
    assert capsys.readouterr().out == "sha256 d1g3st\n"
