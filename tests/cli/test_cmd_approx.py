"""``svmkit approx`` from the outside: mapped files, maps kept and used again, the report, refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from data_files import write_points
from oracle import dense_kernel
from shell import process, strict_json, svmkit, write_blobs
from zoo import points

from svmkit import maps
from svmkit.cli import approx_map, pictures
from svmkit.data import Rows
from svmkit.io import chunks
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.map_file import read_map
from svmkit.maps import quality
from svmkit.maps.quality import errors, norms
from svmkit.problem import RBF, Kernel

OPTIONS = {"fourier": ("--map", "fourier", "-g", "0.5"), "nystroem": ("--map", "nystroem", "-g", "0.5")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    X, y = points(150, 4, seed=1)
    write_points(tmp_path / "d", X, y)
    return tmp_path / "d"


@pytest.mark.parametrize(
    ("kind", "more"),
    [*((kind, more) for kind in OPTIONS for more in ((), ("-j", "1"))), ("fourier", ("--orthogonal",))],
)
def test_a_mapped_file_holds_the_features(kind: str, more: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    done = svmkit("approx", *OPTIONS[kind], *more, "--dim", "20", "--save", tmp_path / "m", data, tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert "150 examples of 20 features written" in done.stderr
    before, after = read_dataset(str(data)), read_dataset(str(tmp_path / "out"))
    features = read_map(str(tmp_path / "m")).transform(before.rows)
    assert np.array_equal(after.rows.to_dense()[:, 1:].astype(np.float32), features)
    assert np.array_equal(after.y, before.y)
    again = svmkit("approx", "--load", tmp_path / "m", "-q", data)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == (tmp_path / "out").read_text()


def test_data_are_mapped_part_by_part(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks of few lines and of few features; and from standard input to standard output."""
    svmkit("approx", *OPTIONS["fourier"], "--dim", "8", data, tmp_path / "whole")
    monkeypatch.setattr(approx_map, "_VALUES", 100)
    monkeypatch.setitem(chunks.read_chunks.__kwdefaults__, "chunk_bytes", 999)
    svmkit("approx", *OPTIONS["fourier"], "--dim", "8", data, tmp_path / "parts")
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
    done = process("approx", *OPTIONS["fourier"], "--dim", "8", "-", "-", stdin=data.read_bytes())
    assert done.stdout == (tmp_path / "whole").read_text()


def test_nothing_is_left_behind_a_bad_line(data: Path, tmp_path: Path) -> None:
    with data.open("a") as file:
        file.write("1 1:x\n")
    for kind in OPTIONS.values():
        done = svmkit("approx", *kind, data, tmp_path / "out", "--save", tmp_path / "m")
        assert done.returncode == 1
        assert "line 151" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_the_report_is_what_the_maps_are_measured_by(data: Path) -> None:
    done = svmkit("approx", "--report", "--json", "-g", "0.5", "--dims", "40,10,10,400", "--sample", "60", data)
    report = strict_json(done.stdout)
    assert (report["n"], report["sample"]) == (150, 60)
    names = {"nystroem pivoted", "nystroem kmeans", "nystroem uniform", "fourier", "fourier orthogonal"}
    assert {row["map"] for row in report["errors"]} == names
    for name in names:
        dims = [row["dim"] for row in report["errors"] if row["map"] == name]
        assert dims == ([10, 40] if name.startswith("nystroem") else [10, 40, 400])  # no more landmarks than rows
        series = [row["frobenius"] for row in report["errors"] if row["map"] == name]
        assert series == sorted(series, reverse=True)
    assert "nystroem is left out with 400 features: only 150 rows" in done.stderr
    table = svmkit("approx", "--report", "-g", "0.5", "--dims", "40,10", "--sample", "60", "--map", "fourier", data)
    lines = table.stdout.splitlines()
    assert lines[0].split() == ["map", "features", "spectral", "frobenius"]
    assert [line.split()[-3] for line in lines[1:]] == ["10", "40", "10", "40"]


def test_the_sample_of_a_report_is_drawn_by_the_seed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And apart from the landmarks: on as many uniform ones the kernel matrix would be exact."""
    seen, kernel_matrix = [], quality.kernel_matrix
    monkeypatch.setattr(
        quality, "kernel_matrix", lambda rows, kernel: seen.append(rows.to_dense()) or kernel_matrix(rows, kernel)
    )
    for seed in (1, 2, 1):
        report = ("approx", "--report", "--json", "-q", "-g", "0.5", "--map", "nystroem", "--seed", seed, data)
        errors = strict_json(svmkit(*report, "--dims", "20", "--sample", "20").stdout)["errors"]
        assert all(row["frobenius"] > 0.01 for row in errors)
    assert [len(rows) for rows in seen] == [20, 20, 20]
    assert [np.array_equal(rows, seen[0]) for rows in seen] == [True, False, True]


def test_a_report_takes_the_norms_of_the_kernel_matrix_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, norms = [], quality.norms
    monkeypatch.setattr(quality, "norms", lambda matrix: measured.append(matrix) or norms(matrix))
    report = svmkit("approx", "--report", "--json", "-q", "-g", "0.5", "--dims", "5,10", "--sample", "20", data)
    assert len(measured) == 1 + len(strict_json(report.stdout)["errors"])


def test_a_report_tells_the_number_of_features_that_a_map_has(data: Path) -> None:
    """A linear kernel of four features has rank 4."""
    options = ("approx", "--report", "-t", "0", "--dims", "2,20", "-q")
    errors = strict_json(svmkit(*options, "--json", data).stdout)["errors"]
    assert [(row["dim"], row["features"]) for row in errors] == 3 * [(2, 2), (20, 4)]
    assert [line.split()[-3] for line in svmkit(*options, data).stdout.splitlines()[1:]] == 3 * ["2", "4"]


def test_a_report_of_nothing_is_refused(data: Path) -> None:
    done = svmkit("approx", "--report", "-t", "0", "--dims", "5000", data)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no more features than DATA has rows, 150" in done.stderr


def test_a_map_too_large_for_memory_is_left_out_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 2147483647:1\n-1 5:1\n1 2147483647:2\n-1 7:1\n")
    done = svmkit("approx", "--report", "--json", "-g", "1", "--map", "fourier", "--dims", "3", "d", cwd=tmp_path)
    assert [row["map"] for row in strict_json(done.stdout)["errors"]] == ["fourier"]
    assert (
        "fourier orthogonal is left out with 3 features: --orthogonal: 3 frequencies over features 1 to 2147483647"
        in done.stderr
    )


def test_pivoted_landmarks_are_not_measured_where_they_are_uniform_ones(data: Path) -> None:
    report = strict_json(svmkit("approx", "--report", "--json", "-t", "3", "-g", "0.1", "--dims", "10", data).stdout)
    assert [row["map"] for row in report["errors"]] == ["nystroem kmeans", "nystroem uniform"]


def test_errors_are_those_of_the_matrices() -> None:
    rows, kernel = Rows.from_dense(points(40, 3, seed=2)[0]), Kernel(RBF, 0.5)
    made = maps.from_dict(
        {"map": "fourier", "version": 1, "gamma": 0.5, "dim": 30, "seed": 1, "orthogonal": False, "n_features": 3}
    )
    K, phi = dense_kernel(rows, rows, kernel), made.transform(rows).astype(np.float64)
    found = errors(made, rows, K, norms(K))
    assert np.isclose(found.spectral, np.linalg.norm(K - phi @ phi.T, 2) / np.linalg.norm(K, 2))
    assert np.isclose(found.frobenius, np.linalg.norm(K - phi @ phi.T) / np.linalg.norm(K))


@pytest.mark.parametrize("options", [("-t", "0"), ("-t", "1", "-g", "1", "-r", "0")])
def test_data_without_values_have_no_features(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1\n-1\n")
    done = svmkit("approx", "--map", "nystroem", *options, "d", "out", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out").read_text()) == (0, "1\n-1\n")
    assert "2 examples of 0 features written" in done.stderr


@pytest.mark.parametrize("options", [("-t", "0"), ("-t", "1", "-g", "1", "-d", "3")])
def test_a_report_on_kernel_values_that_overflow_is_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:1e77\n-1 1:-1e77\n1 2:1.1e77\n-1 2:-1e77\n")
    done = svmkit("approx", "--report", *options, "--dims", "2", "d", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "kernel values overflow; scale the data" in done.stderr


def test_a_report_on_features_beyond_single_precision_is_refused(tmp_path: Path) -> None:
    """Kernel values of 1e80 are doubles still, their root is no single."""
    (tmp_path / "d").write_text("1 1:1e40\n-1 1:2e40\n")
    done = svmkit("approx", "--report", "-t", "0", "--dims", "1", "d", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "a mapped feature is not finite: scale the data" in done.stderr


def test_a_line_whose_features_overflow_is_told(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map is made of other data, and the line is in a later part of the file, in a later part of what was read of it."""
    monkeypatch.setattr(approx_map, "_VALUES", 4000)
    n = 12_000
    (tmp_path / "far").write_text("1 1:0.5 2:-0.25\n" * n + "-1 1:1e60 2:1e60\n")
    svmkit(
        "approx", "--map", "nystroem", "-t", "1", "-d", "1", "-g", "1", "--dim", "4", "--save", "map", data, "o", cwd=tmp_path
    )
    done = svmkit("approx", "--load", "map", "far", "o2", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"svmkit: far, line {n + 1}: a mapped feature is not finite: scale the data\n"
    assert not (tmp_path / "o2").exists()


def test_an_example_whose_features_overflow_is_told_where_all_are_read(tmp_path: Path) -> None:
    """The last one, which is no landmark; as landmarks all would do."""
    (tmp_path / "d").write_text("1 1:0.5 2:-0.25\n" * 40 + "-1 1:1e60 2:1e60\n")
    done = svmkit("approx", "--map", "nystroem", "-t", "0", "--landmarks", "uniform", "--dim", "4", "d", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "svmkit: d, example 41: a mapped feature is not finite: scale the data\n"


def test_the_default_gamma_of_fourier_features_is_one_over_their_number(data: Path) -> None:
    """So the data have to be read first."""
    options = ("approx", "-q", "--map", "fourier", "--dim", "8")
    assert svmkit(*options, data).stdout == svmkit(*options, "-g", "0.25", data).stdout != ""


def test_the_picture(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    options = ("approx", "--report", "-g", "0.5", "--dims", "10,20", "--sample", "30", "--picture")
    assert svmkit(*options, tmp_path / "p.png", data).returncode == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "blank").write_text("1\n-1\n")  # errors of 0 cannot be drawn on a logarithmic scale
    blank = svmkit("approx", "--report", "-t", "0", "--dims", "2", "--picture", tmp_path / "b.png", tmp_path / "blank")
    assert (blank.returncode, blank.stderr) == (0, "")
    monkeypatch.setattr(pictures, "available", lambda: False)
    refused = svmkit(*options, tmp_path / "q.png", data)
    assert refused.returncode == 2
    assert "svmkit[plot]" in refused.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_where_the_map_cannot_be_written_no_mapped_data_are(data: Path, tmp_path: Path) -> None:
    """Which no other data could be mapped to match."""
    done = svmkit("approx", "--map", "fourier", "--dim", "8", "--save", "/dev/full", data, tmp_path / "out")
    assert (done.returncode, "/dev/full" in done.stderr) == (1, True)
    assert not (tmp_path / "out").exists()


def test_the_picture_is_not_drawn_over_the_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "available", lambda: True)
    before = data.read_bytes()
    done = svmkit("approx", "--report", "--dims", "2", "--picture", data, data)
    assert (done.returncode, data.read_bytes()) == (2, before)
    assert "would be overwritten" in done.stderr


def test_a_report_of_one_map_has_no_other(data: Path) -> None:
    for name in ("nystroem", "fourier"):
        done = svmkit("approx", "--report", "--json", "--map", name, "--dims", "2", data)
        assert {row["map"].split()[0] for row in strict_json(done.stdout)["errors"]} == {name}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "give --map, --load, --report or --model"),
        (("--map", "fourier", "--load", "m"), "one of them"),
        (("--load", "m", "-g", "2"), "-g beside --load"),
        (("--load", "m", "--dim", "9"), "--dim beside --load"),
        (("--load", "m", "--save", "x"), "--save goes with --map"),
        (("--map", "fourier", "--picture", "x"), "--picture goes with --report"),
        (("--map", "fourier", "--json"), "--json goes with --report"),
        (("--map", "fourier", "-t", "0"), "only the rbf kernel"),
        (("--map", "nystroem", "-t", "4"), "no vectors to map"),
        (("--map", "nystroem", "--landmarks", "reduced"), "'--landmarks': 'reduced' is not one of"),
        (("--map", "nystroem", "--dim", "0"), "--dim: 0 must lie in"),
        (("--report", "--picture", "-"), "the table goes to standard output"),
        (("--report", "--json", "--picture", "-"), "the table goes to standard output"),
        (("--report", "--dims", "3,x"), "not a list of whole numbers"),
        (("--report", "--dims", "0"), "0 must lie in"),
        (("--report", "--dims", "3,99999999999999999999"), "99999999999999999999 must lie in"),
        (("--report", "-t", "4"), "no vectors to map"),
        (("--report", "--dim", "9"), "--dim beside --report"),
        (("--report", "--landmarks", "uniform"), "--landmarks beside --report"),
        (("--report", "--map", "fourier", "--cut", "0.1"), "--cut goes with --map nystroem"),
        (("--map", "fourier", "--landmarks", "uniform"), "--landmarks goes with --map nystroem"),
        (("--map", "nystroem", "--orthogonal"), "--orthogonal goes with --map fourier"),
        (("--map", "fourier", "--dims", "9"), "--dims goes with --report"),
        (("--map", "fourier", "--sample", "9"), "--sample goes with --report"),
    ],
)
def test_what_does_not_go_together_is_refused(args: tuple[str, ...], why: str, data: Path, tmp_path: Path) -> None:
    done = svmkit("approx", *args, data, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("mode", [(), ("--report",)])
def test_a_kernel_that_has_no_such_map_is_refused_before_the_data_are_read(mode: tuple[str, ...], tmp_path: Path) -> None:
    done = svmkit("approx", *mode, "--map", "fourier", "-t", "1", tmp_path / "not there")
    assert (done.returncode, done.stdout) == (2, "")
    assert "only the rbf kernel" in done.stderr


def test_a_report_has_no_output_file(data: Path, tmp_path: Path) -> None:
    assert "--picture" in svmkit("approx", "--report", data, tmp_path / "x").stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not a map written by"),
        ("[1]", "not a map written by"),
        ("[" * 100_000, "not a map written by"),
        (json.dumps({"map": "fourier"}), "not a feature map that"),
    ],
)
def test_files_that_are_no_maps_are_refused(content: str, why: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "m").write_text(content)
    done = svmkit("approx", "--load", tmp_path / "m", data)
    assert done.returncode == 1
    assert f"{tmp_path / 'm'}: " in done.stderr
    assert why in done.stderr
    missing = svmkit("approx", "--load", tmp_path / "none", data)
    assert "can't open map file" in missing.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("approx", "--map", "nystroem", "--dim", "4", "-g", "1", "--save", "o", "d", "o"),
        ("approx", "--load", "map", "d", "map"),
        ("approx", "--model", "m", "--basis", "3", "--data", "d", "d"),
    ],
    ids=" ".join,
)
def test_approx_overwrites_nothing_that_it_reads_or_writes(args: tuple[str, ...], tmp_path: Path) -> None:
    write_blobs(tmp_path / "d")
    assert svmkit("train", "-q", "d", "m", cwd=tmp_path).returncode == 0
    mapped = svmkit("approx", "-q", "--map", "fourier", "--dim", "4", "-g", "1", "--save", "map", "d", "x", cwd=tmp_path)
    assert mapped.returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = svmkit(*args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "names one file for two purposes" in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_seed_beside_a_loaded_map_is_refused(tmp_path: Path) -> None:
    write_blobs(tmp_path / "d")
    svmkit("approx", "-q", "--map", "fourier", "--dim", "4", "-g", "1", "--save", "map", "d", "x", cwd=tmp_path)
    done = svmkit("approx", "--load", "map", "--seed", "3", "d", "y", cwd=tmp_path)
    assert (done.returncode, "--seed beside --load" in done.stderr) == (2, True)


def test_map_and_data_cannot_both_be_standard_input() -> None:
    done = svmkit("approx", "--load", "-", "-", "y")
    assert (done.returncode, done.stderr) == (2, "svmkit: DATA and --load cannot both be standard input\n")
