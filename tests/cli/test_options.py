"""The option tables: LIBSVM's letters keep their meaning, defaults come from TrainConfig, everything is documented."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import click
import pytest

from svmkit.cli.main import COMMANDS, group
from svmkit.cli.options import key_value, numbered
from svmkit.cli.train import command as train
from svmkit.config import TrainConfig
from svmkit.errors import UsageError


def parsed(*args: str) -> dict[str, Any]:
    """The parameters ``svmkit train`` would run with."""
    return train.make_context("train", [*args, "data"]).params


def config(*args: str) -> TrainConfig:
    fields = {field.name for field in dataclasses.fields(TrainConfig)}
    return TrainConfig(**{name: value for name, value in parsed(*args).items() if name in fields})


def test_no_options_is_the_default_config() -> None:
    assert config() == TrainConfig()


def test_every_field_of_the_config_is_an_option() -> None:
    assert {field.name for field in dataclasses.fields(TrainConfig)} <= set(parsed())


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("-s 0 -c 5 -t 2 -g 0.5 -e 0.1", {"C": 5.0, "gamma": 0.5, "eps": 0.1}),
        ("-s 3 -p 0.1 -t 0", {"svm_type": "epsilon_svr", "kernel": "linear"}),
        ("-c 10 -w1 1 -w-2 5 -w4 2", {"C": 10.0, "class_weight": ((1, 1.0), (-2, 5.0), (4, 2.0))}),
        ("-s 0 -c 100 -g 0.1 -v 5", {"C": 100.0, "gamma": 0.1}),
        ("-s 0 -b 1", {}),
        ("-s 1 -n 0.3 -q", {"svm_type": "nu_svc"}),
        ("-t 4", {"kernel": "precomputed"}),
        ("-h 0 -m 40", {"shrinking": False, "cache_mb": 40.0}),
        ("-t 1 -d 2 -r -1", {"kernel": "polynomial", "degree": 2, "coef0": -1.0}),
        ("--kernel poly --degree 5 --coef0 1", {"kernel": "polynomial", "degree": 5, "coef0": 1.0}),
        ("--svm-type c_svc --C 3 --gamma 2 --eps 0.01", {"C": 3.0, "gamma": 2.0, "eps": 0.01}),
        ("--weight -1 2 --weight -1 3", {"class_weight": ((-1, 2.0), (-1, 3.0))}),
        ("--lambda 1e-4 --no-bias --solver pair", {"lam": 1e-4, "bias": "none", "solver": "pair"}),
        ("-O a=1 -O b=c=d", {"solver_options": (("a", "1"), ("b", "c=d"))}),
        ("--max-iter 7 --time-limit 0.5 --seed 3 -j 2", {"max_iter": 7, "time_limit_s": 0.5, "seed": 3, "threads": 2}),
        ("--shrinking 1 --cache-mb 7", {"cache_mb": 7.0}),
        ("--bias free --budget-evals 9 --patience 4", {"bias": "free", "max_evaluations": 9, "patience": 4}),
        ("--bias free --no-bias", {"bias": "none"}),
        ("--no-bias --bias free", {"bias": "free"}),
    ],
)
def test_letters_as_libsvm_has_them_and_long_names(line: str, changes: dict[str, Any]) -> None:
    assert config(*line.split()) == dataclasses.replace(TrainConfig(), **changes)


def test_options_may_follow_the_files() -> None:
    params = train.make_context("train", ["data", "model", "-c", "5"]).params
    assert (params["data"], params["model"], params["C"]) == ("data", "model", 5.0)


@pytest.mark.parametrize(
    "args",
    [
        ["-t", "5"],
        ["-t", "２"],
        ["-t", "gauss"],
        ["-O", "key"],
        ["-O", "=1"],
        ["-w1", "x"],
        ["-c"],
        ["-h", "2"],
        ["--bias", "some"],
    ],
)
def test_bad_values_are_refused(args: list[str]) -> None:
    with pytest.raises(click.UsageError):
        train.make_context("train", ["data", *args])


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("gamma", (0.0, 1e308), (-1e-300, math.inf)),
        ("degree", (0, 2**31 - 1), (-1, 2**31)),
        ("coef0", (-1e308, 1e308), (math.nan,)),
        ("C", (1e-100, 1e100), (0.0, 9e-101, 1.1e100)),
        ("lam", (1e-100, 1e100), (0.0, 9e-101, 1.1e100)),
        ("eps", (1e-300, 1e300), (0.0, math.inf)),
        ("cache_mb", (1e-300, 1e12), (0.0, 1.1e12)),
        ("class_weight", (((1, 1e-300),), ((1, 1e300),)), (((1, 0.0),), ((1, math.inf),))),
        ("max_iter", (1,), (0,)),
        ("max_evaluations", (1,), (0,)),
        ("patience", (1,), (0,)),
        ("time_limit_s", (1e-300,), (0.0,)),
        ("seed", (0, 2**63 - 1), (-1, 2**63)),
        ("threads", (0,), (-1,)),
        ("dim", (1, 2**20), (0, 2**20 + 1)),
        ("constant", (0.0, 1e15), (-1e-300, 1.1e15)),
        ("cut", (0.0, 0.999), (-1e-300, 1.0)),
    ],
)
def test_the_ends_of_what_may_be_asked_for(field: str, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    whole = TrainConfig(kernel="polynomial", map="nystroem")
    for value in good:
        dataclasses.replace(whole, **{field: value}).check()
    for value in bad:
        with pytest.raises(UsageError):
            dataclasses.replace(whole, **{field: value}).check()


def test_what_a_kernel_does_not_use_may_be_anything() -> None:
    TrainConfig(kernel="linear", gamma=-1.0, degree=-1).check()


def test_readers() -> None:
    read = numbered(("a", "bee"), b="bee")
    assert [read("0"), read("1"), read("A"), read("b")] == ["a", "bee", "a", "bee"]
    with pytest.raises(click.BadParameter, match="0 a, 1 bee"):
        read("2")
    assert key_value("k=") == ("k", "")


@pytest.mark.parametrize("option", ["-h", "-b"])
def test_a_switch_is_0_or_1(option: str) -> None:
    name = {"-h": "shrinking", "-b": "probability"}[option]
    assert [parsed(option, value)[name] for value in "01"] == [False, True]
    for wrong in ("2", ""):
        with pytest.raises(click.BadParameter, match=f"'{wrong}' is neither 0 nor 1"):
            parsed(option, wrong)


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_is_documented(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name}: {parameter.opts} has no help"


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_means_the_same_everywhere(name: str) -> None:
    """A letter that two commands share has one long name."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    if name == "scale":  # svm-scale's letters
        return
    known = {letter: option.name for option in train.params for letter in option.opts}
    for parameter in command.params:
        for letter in parameter.opts if isinstance(parameter, click.Option) else ():
            assert known.get(letter, parameter.name) == parameter.name
