"""The documents say what is true: help texts are the program's, commands parse, links lead somewhere, the version is listed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from test_layering import ROOMS

import svmkit
from svmkit.cli import main as native
from svmkit.cli.compat import svm_predict, svm_scale, svm_train

ROOT = Path(__file__).parent.parent
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands() -> list[str]:
    """Every line of README that begins with a prompt, without comments, pipes and redirections."""
    lines = re.findall(r"^\$ (.*)$", text_of("README.md"), re.MULTILINE)
    return [re.split(r"\s[|>#]", line)[0] for line in lines]


def test_generated_parts_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, "scripts/readme.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_check_notices_a_difference(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "readme.py").write_text((ROOT / "scripts" / "readme.py").read_text("utf-8"), "utf-8")
    (tmp_path / "README.md").write_text(text_of("README.md").replace("| 2 | wrong usage |", "| 2 | fine |"), "utf-8")
    done = subprocess.run([sys.executable, "scripts/readme.py", "--check"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "behind the program" in done.stderr


def test_every_command_is_in_readme() -> None:
    for name in native.COMMANDS:
        assert f"<!-- begin svmkit {name} --help -->" in text_of("README.md")
    for tool in native.OLD_TOOLS:
        assert any(line.startswith(tool) for line in commands())


@pytest.mark.parametrize("line", commands())
def test_commands_in_readme_parse(line: str) -> None:
    program, *argv = shlex.split(line)
    if program == "svmkit":
        command = native.group.get_command(click.Context(native.group), argv[0])
        assert command is not None, f"no command {argv[0]}"
        command.make_context(f"svmkit {argv[0]}", argv[1:])
    elif program in native.OLD_TOOLS:
        {"svm-train": svm_train, "svm-predict": svm_predict, "svm-scale": svm_scale}[program].parse(argv)
    elif program == "make":
        assert re.search(rf"^{argv[0]}:", text_of("Makefile"), re.MULTILINE), f"no target {argv[0]}"
    elif program.startswith("scripts/"):
        known = subprocess.run([sys.executable, program, "--help"], cwd=ROOT, capture_output=True, text=True).stdout
        assert all(option in known for option in argv if option.startswith("--"))
    else:
        assert line == "pip install ."


def test_quick_start_is_two_commands() -> None:
    section = text_of("README.md").partition("## Quick start")[2].partition("\n## ")[0]
    assert re.findall(r"^\$ (make \w+)", section, re.MULTILINE) == ["make demo", "make test"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    text = text_of(name)
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif not target.startswith("https://"):
            assert (ROOT / target).exists(), target


def test_files_that_documents_name_exist() -> None:
    for name in DOCUMENTS:
        for path in re.findall(r"`((?:scripts|datasets|tests)/[\w./-]+)`", text_of(name)):
            assert (ROOT / path).exists() or path == "datasets/cache", f"{name}: {path}"


def test_environment_variables_are_the_ones_in_use() -> None:
    sources = [*ROOT.glob("svmkit/**/*.py"), *ROOT.glob("scripts/*.py")]
    used = {name for path in sources for name in re.findall(r"\bSVMKIT_[A-Z]+\b", path.read_text("utf-8"))}
    assert set(re.findall(r"^\| `(SVMKIT_[A-Z]+)`", text_of("README.md"), re.MULTILINE)) == used


def test_changelog_has_this_version() -> None:
    assert re.search(rf"^## \[{re.escape(svmkit.__version__)}\]", text_of("CHANGELOG.md"), re.MULTILINE)


def test_architecture_lists_the_rooms_in_their_order() -> None:
    """The table's first column is the order that imports go by; test_layering.py checks that every module is in it."""
    cells = re.findall(r"^\| (`.*?`) \|", text_of("ARCHITECTURE.md"), re.MULTILINE)
    paths = [path for cell in cells for path in re.findall(r"`([^`]+)`", cell)]
    assert [path.removesuffix(".py").removesuffix("/") for path in paths] == [
        room for room in ROOMS if room not in ("__init__", "__main__")
    ]
    for path in paths:
        assert (ROOT / "svmkit" / path).exists(), path
        assert (ROOT / "svmkit" / path).is_dir() == path.endswith("/"), path


def test_architecture_names_every_file_of_the_engine() -> None:
    paragraph = text_of("ARCHITECTURE.md").partition("\nWithin `engine/`")[2].partition("\n\n")[0]
    there = {path.stem for path in (ROOT / "svmkit" / "engine").glob("*.py")} - {"__init__"}
    assert set(re.findall(r"`(\w+)`", paragraph)) == there


@pytest.mark.parametrize("name", DOCUMENTS)
def test_text_is_no_wider_than_the_sources(name: str) -> None:
    """Tables are as wide as their cells."""
    assert [line for line in text_of(name).splitlines() if len(line) > 128 and not line.startswith("|")] == []
