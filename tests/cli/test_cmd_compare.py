"""``svmkit compare``: what it writes is what the solvers did."""

from __future__ import annotations

import json
import os
import signal
import statistics
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shell import rows_of, svmkit, write_blobs

from svmkit import fit as fit_module
from svmkit import solvers
from svmkit.cli import comparison_picture, pictures
from svmkit.config import TrainConfig
from svmkit.solvers import smo
from svmkit.trace import Progress

PICTURE = comparison_picture.picture
FILES = {"table.md", "curves.jsonl", "curves.png"}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A solver without a bias that is smo cut short after 6 + seed steps; its runs are counted."""

    def start(problem: Any, options: Any, eps: float, seed: int) -> dict[str, Any]:
        module.started += 1
        return {"smo": smo.start(problem, smo.Options(), eps, seed), "last": 6 + seed}

    def advance(state: dict[str, Any], budget: int) -> Progress:
        now = smo.advance(state["smo"], min(budget, state["last"] - state["smo"].steps))
        module.at_step(now.steps)
        return now._replace(completed=now.steps == state["last"])

    module = SimpleNamespace(
        **{**vars(smo), "__name__": "hasty"},
        started=0,
        at_step=lambda steps: None,
    )
    module.EXACT, module.BIASES, module.ACCURACY = False, ("none",), None
    module.start, module.advance, module.solution = start, advance, lambda state: smo.solution(state["smo"])
    monkeypatch.setitem(sys.modules, "svmkit.solvers.hasty", module)
    monkeypatch.setattr(solvers, "NAMES", (*solvers.NAMES, "hasty"))
    return module


@pytest.fixture(autouse=True)
def plain_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all the rest; ``PICTURE`` is the real one."""
    monkeypatch.setattr(comparison_picture, "picture", lambda runs: b"a picture")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_blobs(tmp_path / "blobs", n=80)


def curves_of(outdir: Path) -> dict[tuple[str, int], list[dict[str, Any]]]:
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in (outdir / "curves.jsonl").read_text().splitlines():
        row = json.loads(line)
        found.setdefault((row["solver"], row["seed"]), []).append(row)
    return found


def test_table_curves_and_picture_tell_of_the_same_runs(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_picture, "picture", PICTURE)
    other = write_blobs(tmp_path / "other", n=50, seed=3)
    done = svmkit("compare", "--solvers", "pair, smo,,pair", "-c", "2", "-g", "0.5", "--holdout", other, data, tmp_path / "out")
    assert done.returncode == 0
    assert "smo, seed 0 (2 of 2): " in done.stderr  # each once, however often it is named
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES
    text, curves = (out / "table.md").read_text(), curves_of(out)
    assert done.stdout == "".join(line + "\n" for line in text.splitlines() if line.startswith("|"))
    assert f"data: {data}, 80 examples" in text
    assert f"held out: {other}, 50 examples" in text
    assert "kernel rbf, gamma 0.5; C 2; tolerance 0.001" in text
    assert list(curves) == [("pair", 0), ("smo", 0)]
    best = max(rows[-1]["dual"] for rows in curves.values())
    for line, ((name, _), rows) in zip(rows_of(text), curves.items(), strict=True):
        last = rows[-1]
        assert (line["solver"], line["bias"], line["status"]) == (name, "free", "CONVERGED")
        assert int(line["support vectors"]) == last["n_support"]
        assert float(line["seconds"]) == pytest.approx(last["seconds"], rel=5e-3)
        assert float(line["kernel evaluations"]) == pytest.approx(last["kernel_evaluations"], rel=5e-4)
        assert float(line["primal"]) == pytest.approx(last["primal"], rel=1e-7)
        assert float(line["above optimum"]) == pytest.approx(last["primal"] / best - 1, rel=5e-3)
        assert float(line["gap"]) == pytest.approx(last["primal"] - last["dual"], rel=5e-3)
        assert line["held-out error"] == f"{100 * last['holdout_error']:.2f} %"
        assert [row["kernel_evaluations"] for row in rows] == sorted(row["kernel_evaluations"] for row in rows)
    width, height = struct.unpack(">II", (out / "curves.png").read_bytes()[16:24])
    assert (out / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert min(width, height) >= 1000


def test_a_figure_of_train_is_that_of_compare(data: Path, tmp_path: Path) -> None:
    """Same solver, same options: the same objective."""
    svmkit("compare", "--solvers", "smo", "-c", "2", "-w1", "3", "--bias", "none", data, tmp_path / "out")
    trained = json.loads(svmkit("train", "--json", "-c", "2", "-w1", "3", "--bias", "none", data, tmp_path / "m").stdout)
    assert curves_of(tmp_path / "out")["smo", 0][-1]["primal"] == trained["primal"]
    (line,) = rows_of((tmp_path / "out" / "table.md").read_text())
    assert (line["bias"], line["held-out error"]) == ("none", "–")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--solvers", "smo,scs", "-O", "scs.first=0"], "-O scs.first=0: must be at least 1"),
        (["--solvers", "smo,scs", "-O", "scs.nope=1"], "-O scs.nope=1: this solver has no option 'nope'"),
        (["--solvers", "smo,sbp", "--seeds", "2", "--seed", str(2**63 - 1)], "--seed: 9223372036854775808 must lie in"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(args: list[str], says: str, data: Path, tmp_path: Path) -> None:
    done = svmkit("compare", *args, data, tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


def test_lambda_is_told_with_the_cost_that_it_stands_for(data: Path, tmp_path: Path) -> None:
    """Examples of weight 0 take no part, so they do not count in C = 1/(λ n)."""
    lines = data.read_text().splitlines()
    left_out = tmp_path / "left_out"
    left_out.write_text("\n".join(line.replace(" ", " cost:0 ", 1) if i < 16 else line for i, line in enumerate(lines)) + "\n")
    svmkit("compare", "--solvers", "smo", "--lambda", "0.01", left_out, tmp_path / "out")
    assert "; lambda 0.01 (C 1.5625); tolerance" in (tmp_path / "out" / "table.md").read_text()
    trained = json.loads(svmkit("train", "--json", "-c", "1.5625", left_out, tmp_path / "m").stdout)
    assert curves_of(tmp_path / "out")["smo", 0][-1]["primal"] == trained["primal"]


def test_the_numbers_of_the_kernel_are_told(data: Path, tmp_path: Path) -> None:
    for options, told in (
        ("-t 1 -d 2 -r 1", "kernel polynomial, gamma 0.25, coef0 1, degree 2;"),
        ("-t 3 -g 0.1 -r -1", "kernel sigmoid, gamma 0.1, coef0 -1;"),
    ):
        svmkit("compare", "--solvers", "smo", *options.split(), data, f"{tmp_path}/out/")
        assert told in (tmp_path / "out" / "table.md").read_text()


def test_seeds_are_runs_of_their_own_where_they_play_a_part(data: Path, tmp_path: Path, hasty: SimpleNamespace) -> None:
    out = tmp_path / "out"
    done = svmkit("compare", "--solvers", "hasty,smo", "--seeds", "3", "--seed", "4", "--holdout", "0.25", data, out)
    assert done.returncode == 0
    curves = curves_of(out)
    assert list(curves) == [("hasty", 4), ("hasty", 5), ("hasty", 6), ("smo", 4)]
    assert [curves["hasty", seed][-1]["steps"] for seed in (4, 5, 6)] == [10, 11, 12]
    first, second, third = rows_of((out / "table.md").read_text())
    ends = [curves["hasty", seed][-1] for seed in (4, 5, 6)]
    errors = [100 * end["holdout_error"] for end in ends]
    assert first["held-out error"] == f"{statistics.mean(errors):.2f} ± {statistics.stdev(errors):.2f} %"
    assert float(first["primal"]) == pytest.approx(statistics.median(end["primal"] for end in ends), rel=1e-7)
    assert (first["solver"], first["bias"], first["status"]) == ("hasty", "none", "COMPLETED")
    assert (second["solver"], second["bias"]) == ("smo", "free")
    # the two solve different problems: smo runs once more for the optimum of the other
    assert (third["solver"], third["bias"]) == ("smo (reference)", "none")
    assert float(first["above optimum"]) > 10 * float(third["above optimum"])
    assert "optimum with no bias: at least" in (out / "table.md").read_text()
    assert "- seeds: 4 to 6; a solver that draws no random numbers counts once\n" in (out / "table.md").read_text()


def test_where_the_exact_solver_was_cut_short_the_optimum_is_found_without_limits(data: Path, tmp_path: Path) -> None:
    done = svmkit("compare", "--solvers", "smo", "--max-iter", "3", data, tmp_path / "out")
    cut, reference = rows_of(done.stdout)
    assert (cut["status"], reference["solver"], reference["status"]) == ("MAX_ITER", "smo (reference)", "CONVERGED")
    assert float(cut["above optimum"]) > 0.1 > 1e-3 > float(reference["above optimum"]) > 0
    assert "limit of iterations: 3" in (tmp_path / "out" / "table.md").read_text()


def test_budget_and_patience_end_runs(tmp_path: Path, hasty: SimpleNamespace) -> None:
    data = write_blobs(tmp_path / "d", n=80)
    done = svmkit("compare", "--solvers", "hasty", "--budget-evals", "1", data, tmp_path / "a")
    assert rows_of(done.stdout)[0]["status"] == "MAX_EVALUATIONS"
    done = svmkit(
        "compare", "--solvers", "smo,hasty", "--patience", "1", "--seed", "99", "--holdout", data, data, tmp_path / "b"
    )
    assert [row["status"] for row in rows_of(done.stdout)][:2] == ["CONVERGED", "EARLY_STOP"]


def test_knobs_go_to_their_solver(data: Path, tmp_path: Path) -> None:
    done = svmkit("compare", "--solvers", "smo,pair", "-O", "smo.working_set=4", data, tmp_path / "out")
    assert done.returncode == 0
    curves = curves_of(tmp_path / "out")
    plain = svmkit("compare", "--solvers", "smo,pair", data, tmp_path / "plain")
    assert plain.returncode == 0
    assert curves["smo", 0][-1]["steps"] != curves_of(tmp_path / "plain")["smo", 0][-1]["steps"]
    assert curves["pair", 0][-1]["steps"] == curves_of(tmp_path / "plain")["pair", 0][-1]["steps"]


def test_a_solver_that_declines_is_left_out_with_its_reason(data: Path, tmp_path: Path, hasty: SimpleNamespace) -> None:
    done = svmkit("compare", "--solvers", "hasty,smo", "--bias", "free", data, tmp_path / "out")
    assert "warning: hasty is left out: it trains without a bias only" in done.stderr
    assert [row["solver"] for row in rows_of(done.stdout)] == ["smo"]
    alone = svmkit("compare", "--solvers", "hasty", "--bias", "free", data, tmp_path / "none")
    assert (alone.returncode, alone.stdout) == (2, "")
    assert not (tmp_path / "none").exists()


def test_without_matplotlib_there_is_a_note_and_the_rest(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)
    done = svmkit("compare", "--solvers", "smo", data, tmp_path / "out")
    assert done.returncode == 0
    assert "matplotlib" in done.stderr.splitlines()[-1]
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES - {"curves.png"}


def test_a_matplotlib_that_cannot_be_imported_is_as_none(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One built for another NumPy is there, and fails."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("raise ImportError('numpy.core.multiarray failed to import')\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    done = svmkit("compare", "--solvers", "smo", data, tmp_path / "out")
    assert (done.returncode, len(rows_of(done.stdout))) == (0, 1)
    assert "pictures need matplotlib" in done.stderr.splitlines()[-1]


def test_quiet_prints_the_table_alone(data: Path, tmp_path: Path) -> None:
    done = svmkit("compare", "-q", "--solvers", "smo", data, tmp_path / "out")
    assert (done.returncode, done.stderr, len(rows_of(done.stdout))) == (0, "", 1)


def test_an_earlier_comparison_is_replaced(data: Path, tmp_path: Path) -> None:
    for name in ("pair", "smo"):
        assert svmkit("compare", "--solvers", name, data, tmp_path / "out").returncode == 0
    assert list(curves_of(tmp_path / "out")) == [("smo", 0)]


def test_ctrl_c_leaves_the_finished_runs(data: Path, tmp_path: Path, hasty: SimpleNamespace) -> None:
    def at_step(steps: int) -> None:
        if hasty.started == 3:  # the first start only looks at the options
            os.kill(os.getpid(), signal.SIGINT)

    hasty.at_step = at_step
    out = tmp_path / "out"
    done = svmkit("compare", "--solvers", "smo,hasty", "--seeds", "5", data, out)
    assert done.returncode == 130
    assert list(curves_of(out)) == [("smo", 0), ("hasty", 0)]
    assert [row["solver"] for row in rows_of((out / "table.md").read_text())] == ["smo", "hasty"]
    assert {path.name for path in out.iterdir()} == FILES
    assert f"stopped; {out} holds 2 finished runs" in done.stderr

    hasty.started = 1
    done = svmkit("compare", "--solvers", "hasty", data, tmp_path / "none")
    assert (done.returncode, done.stdout) == (130, "")
    assert "nothing was written" in done.stderr
    assert not (tmp_path / "none").exists()


def test_a_name_that_is_no_text_is_written_with_escapes(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / os.fsdecode(b"blobs\xff\n\x1b"))
    assert svmkit("compare", "-q", "--solvers", "smo", data, tmp_path / "out").returncode == 0
    assert "blobs\\udcff\\n\\x1b, 60 examples\n" in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--solvers", "smo", "three", "out"], 1, "three: has 3 classes"),
        (["--solvers", "smo", "one", "out"], 1, "one: has 1 class;"),
        (["--solvers", "smo,nosuch", "good", "out"], 2, "svmkit: no solver is called 'nosuch'; there are smo,"),
        (["--solvers", ",", "good", "out"], 2, "--solvers"),
        (["good", "out"], 2, "--solvers"),
        (["--solvers", "smo", "--seeds", "0", "good", "out"], 2, "--seeds 0"),
        (["--solvers", "smo", "-O", "pair.shrinking=0", "good", "out"], 2, "-O pair.shrinking=0"),
        (["--solvers", "smo", "-O", "shrinking=0", "good", "out"], 2, "-O shrinking=0"),
        (["--solvers", "smo", "-O", "smo.colour=blue", "good", "out"], 2, "colour"),
        (["--solvers", "smo", "--patience", "2", "good", "out"], 2, "--holdout"),
        (["--solvers", "smo", "-c", "1", "--lambda", "1", "good", "out"], 2, "--lambda"),
        (["--solvers", "smo", "-c", "0", "good", "out"], 2, "-c"),
        (["--solvers", "pair", "--bias", "none", "good", "out"], 2, "none of the solvers"),
        (["--solvers", "smo", "good", "one"], 1, "must be a folder"),
        (["--solvers", "smo", "good", "-"], 1, "must be a folder"),
        (["--solvers", "smo", "good", "nowhere"], 1, "must be a folder"),
        (["--solvers", "smo", "good", "no/such"], 1, "no folder"),
        (["--solvers", "smo", "nosuch", "out"], 1, "nosuch"),
        (["--solvers", "smo", "--holdout", "-", "-", "out"], 2, "standard input"),
        (["--solvers", "smo", "before/table.md", "before"], 2, "overwritten"),
        (["--solvers", "smo", "--holdout", "before/table.md", "good", "before"], 2, "overwritten"),
    ],
)
def test_refusals_say_why_and_write_nothing(args: list[str], code: int, words: str, tmp_path: Path) -> None:
    write_blobs(tmp_path / "good")
    write_blobs(tmp_path / "three", classes=(1, 2, 3))
    write_blobs(tmp_path / "one", classes=(1,))
    (tmp_path / "before").mkdir()
    write_blobs(tmp_path / "before" / "table.md")
    (tmp_path / "nowhere").symlink_to("not_there")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = svmkit("compare", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_reference_run_is_none_of_the_curves(tmp_path: Path) -> None:
    svmkit("compare", "-q", "--solvers", "sdca,pair", "--max-iter", "3", write_blobs(tmp_path / "d", n=200), tmp_path / "out")
    names = {json.loads(line)["solver"] for line in (tmp_path / "out" / "curves.jsonl").read_text().splitlines()}
    assert "smo (reference)" in (tmp_path / "out" / "table.md").read_text()
    assert names == {"sdca", "pair"}


def test_the_reference_run_keeps_the_time_limit_and_is_exact_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[TrainConfig] = []
    whole = fit_module.fit

    def noted(dataset: Any, config: TrainConfig, **more: Any) -> Any:
        seen.append(config)
        return whole(dataset, config, **more)

    monkeypatch.setattr(fit_module, "fit", noted)
    data = write_blobs(tmp_path / "d", n=200)
    svmkit("compare", "-q", "--solvers", "pair", "-e", "0.1", "--max-iter", "3", "--time-limit", "100", data, tmp_path / "o")
    cut, reference = seen
    assert (cut.max_iter, cut.time_limit_s, cut.eps) == (3, 100.0, 0.1)
    assert (reference.solver, reference.max_iter, reference.time_limit_s, reference.eps) == ("smo", None, 100.0, 1e-3)
