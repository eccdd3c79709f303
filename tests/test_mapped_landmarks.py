"""Landmarks that training chooses: from each class, from an SVM, told of meanwhile, and given up in time."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data_files import write_points
from shell import svmkit
from zoo import in_bands, points

from svmkit import maps
from svmkit.compress import compress
from svmkit.config import LANDMARKS, TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.engine.rng import permutation
from svmkit.errors import Abandoned, UsageError
from svmkit.fit import fit, reduced_landmarks

CONFIG = TrainConfig(map="nystroem", dim=40, solver="sdca", bias="none", gamma=0.3, C=2.0, eps=1e-6, seed=3)
REDUCED = replace(CONFIG, landmarks="reduced", solver="newton", bias="free")


def test_a_rare_class_has_as_many_landmarks_as_the_other() -> None:
    """Examples of weight 0 are none of it."""
    dataset = in_bands()
    rare = np.flatnonzero(dataset.y == 1)[:30]
    whole = dataset.take(np.sort(np.concatenate([rare, np.flatnonzero(dataset.y == -1)])))
    weight = np.where((whole.y == 1) & (np.cumsum(whole.y == 1) > 20), 0.0, 1.0)
    found = fit(replace(whole, weight=weight), replace(CONFIG, landmarks="pivoted", dim=30)).model.rows.to_dense()
    lines = {tuple(line): (y, w) for line, y, w in zip(whole.rows.to_dense().tolist(), whole.y, weight, strict=True)}
    labels = [lines[tuple(line)] for line in found.tolist()]
    assert labels.count((1.0, 1.0)) == labels.count((-1.0, 1.0)) == 15


@pytest.mark.parametrize("n_class", [2, 4])
def test_on_all_support_vectors_of_the_exact_svm_a_map_loses_nothing(n_class: int) -> None:
    """Its decision functions lie in their span, so the mapped optimum is the exact one; whatever γ stands for."""
    config = replace(REDUCED, dim=200, gamma=0.0)
    exact = fit(in_bands(n_class), replace(config, map=None, solver="smo"))
    on_map = fit(in_bands(n_class), config)
    assert on_map.model.n_support == exact.model.n_support * (n_class - 1)
    for ours, theirs in zip(on_map.machines, exact.machines, strict=True):
        assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("cost", [{"C": 2.0}, {"lam": 0.01}], ids=str)
def test_reduced_landmarks_are_what_an_svm_on_drawn_rows_is_reduced_to(
    cost: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the examples that count: those of weight 0 are none of them. Its costs are the config's, its solver smo."""
    monkeypatch.setattr("svmkit.fit.ROWS_A_LANDMARK", 6)
    config = replace(REDUCED, dim=20, class_weight=((1, 3.0),), **cost)
    dataset = replace(in_bands(), weight=np.where(np.arange(200) % 4 == 0, 0.0, 1.5))
    used = np.flatnonzero(np.arange(200) % 4)
    drawn = used[np.sort(permutation(config.seed, 1 << 44, len(used))[: 6 * 20])]
    exact = fit(dataset.take(drawn), TrainConfig(gamma=0.3, eps=1e-6, seed=3, class_weight=((1, 3.0),), **cost))
    small = compress(exact.model, 20, config.seed)
    assert exact.model.n_support > 20
    found = reduced_landmarks(dataset, used, config)
    assert found is not None
    assert found.to_dense().tolist() == small.rows.to_dense().tolist()
    assert fit(dataset, config).model.rows.to_dense().tolist() == small.rows.to_dense().tolist()


def test_landmarks_are_pivoted_where_all_rows_drawn_are_of_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """For there is no SVM then that they could be reduced from."""
    monkeypatch.setattr("svmkit.fit.ROWS_A_LANDMARK", 1)
    config, y = replace(REDUCED, dim=20), np.full(200, -1.0)
    y[permutation(config.seed, 1 << 44, 200)[-1]] = 1.0
    dataset = replace(in_bands(), y=y)
    assert reduced_landmarks(dataset, np.arange(200), config) is None
    found, pivoted = (fit(dataset, replace(config, landmarks=way)).model for way in ("reduced", "pivoted"))
    assert found.rows.to_dense().tolist() == pivoted.rows.to_dense().tolist()


def test_where_no_svm_can_be_reduced_is_said() -> None:
    for kernel in ("linear", "sigmoid"):
        with pytest.raises(UsageError, match=f"--landmarks reduced: for the {kernel} kernel"):
            fit(in_bands(), replace(REDUCED, kernel=kernel))
    with pytest.raises(UsageError, match="--landmarks reduced: with a negative -r the polynomial kernel may be indefinite"):
        fit(in_bands(), replace(REDUCED, kernel="polynomial", coef0=-1.0))
    with pytest.raises(UsageError, match="--dim 3: 4 classes need a basis vector each, more than 3"):
        fit(in_bands(4), replace(REDUCED, dim=3))
    cubic = replace(REDUCED, kernel="polynomial", coef0=1.0, dim=15)
    assert 0 < fit(in_bands(), cubic).model.n_support <= 15


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_what_is_done_while_a_map_is_made_is_told(landmarks: str) -> None:
    X, y = points(300, 4, seed=1)
    dataset = Dataset(Rows.from_dense(X), y)
    config = replace(REDUCED, landmarks=landmarks, dim=20)
    told: list[str] = []
    heard = fit(dataset, config, on_mapping=told.append)
    ways = {"kmeans": "round 1 of 10 of k-means", "pivoted": "0 of 10 chosen", "reduced": "step 2 of 100, "}
    if landmarks in ways:
        assert any(text.startswith(f"landmarks: {ways[landmarks]}") for text in told)
    if landmarks == "reduced":
        assert told[0].startswith("landmarks: an SVM on 300 examples, ")
    assert told[-1] == "300 examples mapped"
    np.testing.assert_array_equal(heard.model.machines[0].coef, fit(dataset, config).model.machines[0].coef)


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_a_map_that_is_not_made_in_time_makes_no_model(landmarks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is looked at the first to the last time before machines are trained."""
    monkeypatch.setattr("svmkit.mapped._PART_ROWS", 70)
    X, y = points(300, 4, seed=1)
    dataset = Dataset(Rows.from_dense(X), y)
    config = TrainConfig(solver="sdca", map="nystroem", dim=40, landmarks=landmarks, gamma=0.2, time_limit_s=1e3)
    looks = []
    fit(dataset, config, interrupted=lambda: bool(looks.append(0)))
    for before in (0, 1, 5):
        left = iter([False] * before)
        with pytest.raises(Abandoned, match="stopped while the map was made"):
            fit(dataset, config, interrupted=lambda left=left: next(left, True))
    assert len(looks) > 6
    with pytest.raises(Abandoned, match=r"--time-limit: time was over before the map was made"):
        fit(dataset, replace(config, time_limit_s=1e-9))


@pytest.mark.parametrize(("args", "code"), [([], 130), (["--time-limit", "1e-9"], 1), (["-v", "3"], 130)])
def test_an_older_model_stays_where_the_map_is_not_made(
    args: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = points(60, 3, seed=1)
    write_points(tmp_path / "d", X, y)
    (tmp_path / "m").write_text("an older one\n")
    if code == 130:
        monkeypatch.setattr(maps, "fit", lambda *given, **more: (os.kill(os.getpid(), signal.SIGINT), given[-1]("this")))
    names = ["d"] if "-v" in args else ["d", "m"]
    done = svmkit("train", "--map", "nystroem", "--dim", "9", "--solver", "sdca", *args, *names, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert "nothing was trained, nothing was written" in done.stderr
    assert (tmp_path / "m").read_text() == "an older one\n"


def test_labels_that_are_one_class_have_one_share_of_landmarks() -> None:
    """1.5 is class 1, as it is for the machines."""
    X, y = points(200, 4, seed=2)
    config = TrainConfig(solver="newton", map="nystroem", dim=20, gamma=0.2)
    plain, mixed = (
        fit(Dataset(Rows.from_dense(X), labels), config) for labels in (y, np.where(np.arange(200) % 3 == 0, 1.5 * y, y))
    )
    assert np.array_equal(plain.model.machines[0].coef, mixed.model.machines[0].coef)
