"""The makers of data sets write what they say, the same every time; the fetcher checks, resumes and explains itself."""

from __future__ import annotations

import bz2
import csv
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ARTIFICIAL = ("waveform", "waveform3", "gaussians", "checkerboard", "banana", "xor", "separable", "noisy", "text")


def run(*argv: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, argv)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=60)


def parse(text: str) -> list[tuple[float, list[tuple[int, float]]]]:
    """LIBSVM text as (label, pairs), by the plainest reader there is."""
    out = []
    for line in text.splitlines():
        label, *pairs = line.split()
        out.append((float(label), [(int(i), float(v)) for i, v in (pair.split(":") for pair in pairs)]))
    return out


def test_the_makers_say_what_they_make() -> None:
    assert "15.87 %" in " ".join(run("datasets/artificial.py", "--help").stdout.split())


@pytest.mark.parametrize("name", ARTIFICIAL)
def test_artificial_sets_are_repeatable_libsvm_text(name: str) -> None:
    longer = run("datasets/artificial.py", name, "--rows", "2100", "--seed", "3")
    shorter = run("datasets/artificial.py", name, "--rows", "70", "--seed", "3")
    other = run("datasets/artificial.py", name, "--rows", "70", "--seed", "4")
    assert (longer.returncode, longer.stderr) == (0, "")
    assert longer.stdout.splitlines()[:70] == shorter.stdout.splitlines()
    assert other.stdout != shorter.stdout
    rows = parse(longer.stdout)
    assert len(rows) == 2100
    assert {label for label, _ in rows} == ({1.0, 2.0, 3.0} if name == "waveform3" else {1.0, -1.0})
    for _, pairs in rows:
        indices = [i for i, _ in pairs]
        assert indices == sorted(set(indices))
        assert indices[0] >= 1


def test_separable_has_the_margin_it_names() -> None:
    rows = parse(run("datasets/artificial.py", "separable", "--rows", "500").stdout)
    assert len(rows) == 500
    for label, pairs in rows:
        assert label * sum(v for _, v in pairs) / 20**0.5 >= 0.1 - 1e-4


def test_waveform_means_are_the_triangles() -> None:
    """At point 11 the triangles are 6, 2 and 2, and u has mean ½."""
    rows = parse(run("datasets/artificial.py", "waveform3", "--rows", "6000").stdout)
    for kind, mean in ((1.0, 4.0), (2.0, 4.0), (3.0, 2.0)):
        values = [dict(pairs)[11] for label, pairs in rows if label == kind]
        assert sum(values) / len(values) == pytest.approx(mean, abs=0.15)  # five standard errors


def test_a_reader_that_stops_early_is_no_error() -> None:
    argv = [sys.executable, "datasets/artificial.py", "waveform", "--rows", "50000"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        assert maker.stderr is not None
        maker.stdout.readline()
        maker.stdout.close()
        assert maker.stderr.read() == b""


@pytest.mark.parametrize(("name", "rows", "classes"), [("breast-cancer", 569, 2), ("digits", 1797, 10), ("iris", 150, 3)])
def test_small_sets_hold_scikit_learns_numbers(name: str, rows: int, classes: int, tmp_path: Path) -> None:
    from sklearn import datasets

    assert run("datasets/small.py", name, tmp_path).returncode == 0
    parts = [parse((tmp_path / file).read_text()) for file in (name, f"{name}.t")]
    both = parts[0] + parts[1]
    assert len(both) == rows
    assert len({label for label, _ in both}) == classes
    expected = getattr(datasets, f"load_{name.replace('-', '_')}")().data.tolist()
    wanted = sorted(tuple((j, v) for j, v in enumerate(row, 1) if v) for row in expected)
    assert sorted(tuple(pairs) for _, pairs in both) == wanted


def test_table_of_public_sets_is_whole() -> None:
    with open(ROOT / "datasets" / "public.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert all(row[key] for key in ("name", "url", "rows", "features", "source")), row
        assert row["url"].rsplit("/", 1)[1].removesuffix(".bz2") == row["name"]
        assert len(row["sha256_text"]) in (0, 64)


class Site(NamedTuple):
    """A web server that can resume: its address, its files by path, the ranges it was asked for.

    It ends an answer after so many bytes for each number in ``breaks``.
    """

    base: str
    files: dict[str, bytes]
    ranges: list[str]
    breaks: list[int]


@pytest.fixture
def site() -> Iterator[Site]:
    """The server, running."""
    files: dict[str, bytes] = {}
    ranges: list[str] = []
    breaks: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path.lstrip("/"))
            if body is None:
                self.send_error(404)
                return
            asked = self.headers.get("Range", "")
            ranges.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-") or 0)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            self.wfile.write(body[start:][: breaks.pop() if breaks else None])

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Site(f"http://127.0.0.1:{server.server_port}/", files, ranges, breaks)
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetch_unpacks_skips_and_resumes(site: Site, tmp_path: Path) -> None:
    base, files, ranges, _ = site
    text = b"".join(b"1 1:%d \n" % i for i in range(49990))
    files["binary/ijcnn1.bz2"] = bz2.compress(text)
    env = {"SVMKIT_DATA": str(tmp_path), "no_proxy": "127.0.0.1"}

    (tmp_path / "ijcnn1.part").write_bytes(files["binary/ijcnn1.bz2"][:100])
    done = run("scripts/fetch.py", "ijcnn1", "--base", base, env=env)
    assert done.returncode == 0, done.stderr
    assert ranges == ["bytes=100-"]
    assert (tmp_path / "ijcnn1").read_bytes() == text
    assert [p.name for p in tmp_path.iterdir()] == ["ijcnn1"]
    squeezed = hashlib.sha256(text.replace(b" \n", b"\n")).hexdigest()
    assert squeezed in done.stdout

    again = run("scripts/fetch.py", "ijcnn1", "--base", base, env=env)
    assert "there already" in again.stdout
    assert len(ranges) == 1


def test_fetch_goes_on_where_the_server_hung_up(site: Site, tmp_path: Path) -> None:
    """An answer that ends before its length is no error to the library; what came is kept all the same."""
    text = b"".join(b"1 1:%d \n" % i for i in range(49990))
    packed = site.files["binary/ijcnn1.bz2"] = bz2.compress(text)
    site.breaks.extend([50, 100])
    env = {"SVMKIT_DATA": str(tmp_path), "no_proxy": "127.0.0.1"}
    for came, left in ((100, len(packed)), (50, len(packed) - 100)):
        broken = run("scripts/fetch.py", "ijcnn1", "--base", site.base, env=env)
        assert broken.returncode == 1
        assert f"the connection ended after {came} of {left} bytes\nWhat has arrived is kept" in broken.stderr
    assert run("scripts/fetch.py", "ijcnn1", "--base", site.base, env=env).returncode == 0
    assert site.ranges == ["", "bytes=100-", "bytes=150-"]
    assert (tmp_path / "ijcnn1").read_bytes() == text


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"1 1:1\n", "1 rows came, 270 expected"), (b"1 1:1\n" * 270, "sha256"), (None, "404")],
)
def test_fetch_refuses_what_is_not_the_set(site: Site, tmp_path: Path, body: bytes | None, reason: str) -> None:
    base, files, _, _ = site
    if body is not None:
        files["binary/heart_scale"] = body
    out = run("scripts/fetch.py", "heart_scale", "--base", base, env={"SVMKIT_DATA": str(tmp_path), "no_proxy": "127.0.0.1"})
    assert out.returncode == 1
    assert reason in out.stderr
    assert "Traceback" not in out.stderr
    assert list(tmp_path.iterdir()) == []


def test_fetch_without_a_connection_says_so(tmp_path: Path) -> None:
    env = {"SVMKIT_DATA": str(tmp_path), "no_proxy": "127.0.0.1"}
    out = run("scripts/fetch.py", "heart_scale", "--base", "http://127.0.0.1:9/", env=env)
    assert out.returncode == 1
    assert "No connection?" in out.stderr
    assert "Traceback" not in out.stderr
