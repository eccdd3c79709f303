"""The pair solver says what svm-train prints: against texts that the genuine tool wrote, and the tool where it is installed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from data_files import write_points
from golden_data import TOOLS, needs_tools
from zoo import points, problem, sixty_fourths

from svmkit.data import Floats
from svmkit.problem import Kernel
from svmkit.solvers import pair

EVERY = 10**9


@dataclass(frozen=True)
class Setting:
    """Training options by LIBSVM's letters. All are exact in float32, to which Debian's svm-train rounds what it reads."""

    t: int = 2
    c: float = 1.0
    g: float = 0.5
    r: float = 0.0
    d: int = 3
    w: tuple[float, float] = (1.0, 1.0)
    h: int = 1
    m: float = 100.0
    e: float = 0.0009765625
    ties: bool = False

    def __str__(self) -> str:
        weights = "" if self.w == (1.0, 1.0) else f" -w1 {self.w[0]:g} -w-1 {self.w[1]:g}"
        kernel = f"-t {self.t} -g {self.g:g} -r {self.r:g} -d {self.d}"
        return f"{kernel} -c {self.c:g} -e {self.e:.10g} -h {self.h} -m {self.m:g}{weights}"

    @property
    def name(self) -> str:
        return f"{'ties' if self.ties else 'plain'} {self}"

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.t, self.g, self.r, self.d)


SETTINGS = [
    Setting(),
    Setting(c=64.0),
    Setting(c=1024.0, g=0.125),
    Setting(c=64.0, h=0),
    Setting(c=64.0, m=0.0078125),
    Setting(c=0.015625),
    Setting(c=8.0, w=(4.0, 0.5)),
    Setting(c=8.0, e=0.5),
    Setting(c=8.0, e=2.0**-20),
    Setting(t=0),
    Setting(t=0, c=0.03125, w=(1.0, 2.0)),
    Setting(t=0, c=64.0, e=0.0625),
    Setting(t=1, r=1.0, g=0.25),
    Setting(t=1, r=0.5, g=0.25, d=2, c=4.0, h=0),
    Setting(t=3, g=0.03125, r=-0.5),
    Setting(t=3, g=0.5, c=4.0),
    Setting(ties=True),
    Setting(ties=True, c=16.0, g=0.25),
    Setting(ties=True, t=0),
]


def training_data(setting: Setting) -> tuple[Floats, Floats]:
    """The setting's data, positives first."""
    return zeros_and_ones() if setting.ties else sixty_fourths()


def zeros_and_ones() -> tuple[Floats, Floats]:
    """300 rows of which many are equal, so that the choice of a pair often meets ties."""
    X, y = points(300, 6, seed=21)
    order = np.argsort(-y, kind="stable")
    return (X[order] > 0).astype(np.float64), y[order]


def solve(setting: Setting) -> str:
    """What svm-train would print, from ``report``."""
    X, y = training_data(setting)
    C = setting.c * np.where(y > 0, *setting.w)
    options = pair.Options(cache_mb=setting.m, shrinking=bool(setting.h))
    state = pair.start(problem(X, y, setting.kernel, C), options, setting.e, 0)
    assert pair.advance(state, EVERY).done
    return text_of(pair.report(state))


def text_of(report: pair.PairReport) -> str:
    nu = "" if report.nu is None else f"nu = {report.nu:f}\n"
    return (
        f"{report.progress}\noptimization finished, #iter = {report.iterations}\n{nu}"
        f"obj = {report.objective:f}, rho = {report.rho:f}\nnSV = {report.n_support}, nBSV = {report.n_bounded}\n"
        f"Total nSV = {report.n_support}\n"
    )


#: Made by LIBSVM 3.24's svm-train on files of ``training_data``.
GOLDEN = {
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*.*\n"
        "optimization finished, #iter = 740\n"
        "nu = 0.593258\n"
        "obj = -242.706894, rho = 0.102143\n"
        "nSV = 463, nBSV = 219\n"
        "Total nSV = 463\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 64 -e 0.0009765625 -h 1 -m 100": (
        "..*..*\n"
        "optimization finished, #iter = 2483\n"
        "nu = 0.040398\n"
        "obj = -817.589271, rho = 0.049469\n"
        "nSV = 417, nBSV = 1\n"
        "Total nSV = 417\n"
    ),
    "plain -t 2 -g 0.125 -r 0 -d 3 -c 1024 -e 0.0009765625 -h 1 -m 100": (
        "................................*................*\n"
        "optimization finished, #iter = 29129\n"
        "nu = 0.083623\n"
        "obj = -30385.874761, rho = -0.295151\n"
        "nSV = 259, nBSV = 16\n"
        "Total nSV = 259\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 64 -e 0.0009765625 -h 0 -m 100": (
        "....*\n"
        "optimization finished, #iter = 2483\n"
        "nu = 0.040398\n"
        "obj = -817.589271, rho = 0.049469\n"
        "nSV = 417, nBSV = 1\n"
        "Total nSV = 417\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 64 -e 0.0009765625 -h 1 -m 0.0078125": (
        "..*..*\n"
        "optimization finished, #iter = 2483\n"
        "nu = 0.040398\n"
        "obj = -817.589271, rho = 0.049469\n"
        "nSV = 417, nBSV = 1\n"
        "Total nSV = 417\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 0.015625 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 305\n"
        "nu = 0.950000\n"
        "obj = -8.684723, rho = 0.914086\n"
        "nSV = 574, nBSV = 565\n"
        "Total nSV = 574\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 8 -e 0.0009765625 -h 1 -m 100 -w1 4 -w-1 0.5": (
        ".*.*\noptimization finished, #iter = 1566\nobj = -478.273573, rho = 0.088384\nnSV = 441, nBSV = 45\nTotal nSV = 441\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 8 -e 0.5 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 395\n"
        "nu = 0.195443\n"
        "obj = -567.471775, rho = 0.057937\n"
        "nSV = 406, nBSV = 29\n"
        "Total nSV = 406\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 8 -e 9.536743164e-07 -h 1 -m 100": (
        "....*.*\n"
        "optimization finished, #iter = 3503\n"
        "nu = 0.204491\n"
        "obj = -575.201846, rho = 0.066074\n"
        "nSV = 434, nBSV = 34\n"
        "Total nSV = 434\n"
    ),
    "plain -t 0 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "...*.*\n"
        "optimization finished, #iter = 2825\n"
        "nu = 0.476525\n"
        "obj = -282.615431, rho = -0.091044\n"
        "nSV = 289, nBSV = 280\n"
        "Total nSV = 289\n"
    ),
    "plain -t 0 -g 0.5 -r 0 -d 3 -c 0.03125 -e 0.0009765625 -h 1 -m 100 -w1 1 -w-1 2": (
        "*\noptimization finished, #iter = 378\nobj = -13.497694, rho = 0.551926\nnSV = 356, nBSV = 347\nTotal nSV = 356\n"
    ),
    "plain -t 0 -g 0.5 -r 0 -d 3 -c 64 -e 0.0625 -h 1 -m 100": (
        ".............................................\n"
        "WARNING: using -h 0 may be faster\n"
        "*...................................................*.......*\n"
        "optimization finished, #iter = 61601\n"
        "nu = 0.465409\n"
        "obj = -17868.330770, rho = -0.088158\n"
        "nSV = 291, nBSV = 272\n"
        "Total nSV = 291\n"
    ),
    "plain -t 1 -g 0.25 -r 1 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        ".......*....*\n"
        "optimization finished, #iter = 7040\n"
        "nu = 0.354617\n"
        "obj = -181.994120, rho = -0.695779\n"
        "nSV = 275, nBSV = 161\n"
        "Total nSV = 275\n"
    ),
    "plain -t 1 -g 0.25 -r 0.5 -d 2 -c 4 -e 0.0009765625 -h 0 -m 100": (
        "....................*\n"
        "optimization finished, #iter = 12034\n"
        "nu = 0.417371\n"
        "obj = -980.410351, rho = -0.442807\n"
        "nSV = 272, nBSV = 230\n"
        "Total nSV = 272\n"
    ),
    "plain -t 3 -g 0.03125 -r -0.5 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 278\n"
        "nu = 0.644078\n"
        "obj = -343.666063, rho = -0.036844\n"
        "nSV = 393, nBSV = 383\n"
        "Total nSV = 393\n"
    ),
    "plain -t 3 -g 0.5 -r 0 -d 3 -c 4 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 205\n"
        "nu = 0.355864\n"
        "obj = -8662.805308, rho = -0.010933\n"
        "nSV = 216, nBSV = 211\n"
        "Total nSV = 216\n"
    ),
    "ties -t 2 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 171\n"
        "nu = 0.599514\n"
        "obj = -162.630687, rho = -0.123587\n"
        "nSV = 192, nBSV = 164\n"
        "Total nSV = 192\n"
    ),
    "ties -t 2 -g 0.25 -r 0 -d 3 -c 16 -e 0.0009765625 -h 1 -m 100": (
        "..\n"
        "WARNING: using -h 0 may be faster\n"
        "*.\n"
        "WARNING: using -h 0 may be faster\n"
        "*\n"
        "optimization finished, #iter = 1071\n"
        "nu = 0.499881\n"
        "obj = -2241.464830, rho = -0.181641\n"
        "nSV = 181, nBSV = 123\n"
        "Total nSV = 181\n"
    ),
    "ties -t 0 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 103\n"
        "nu = 0.586667\n"
        "obj = -174.000000, rho = 0.999941\n"
        "nSV = 182, nBSV = 172\n"
        "Total nSV = 182\n"
    ),
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_text_is_what_svm_train_wrote(setting: Setting) -> None:
    assert solve(setting) == GOLDEN[setting.name]


@needs_tools
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_text_is_what_svm_train_writes(setting: Setting, tmp_path: Path) -> None:
    write_points(tmp_path / "data", *training_data(setting))
    command = [str(TOOLS / "svm-train"), *str(setting).split(), "data", "model"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert solve(setting) == finished.stdout
