#!/usr/bin/env python3
"""Downloads the public data sets of datasets/public.csv, unpacked, into $SVMKIT_DATA (else datasets/cache).

    scripts/fetch.py                the sets that benchmarks and slow tests use
    scripts/fetch.py a9a usps       these
    scripts/fetch.py --list         what there is

A set that is there is left alone; a download that broke off goes on where it stopped. Each file is checked by its number of
rows and, where the table has one, by the SHA-256 of its text with blanks squeezed (copies differ in trailing blanks only).
URLs in the table are relative to LIBSVM's data page. The sets belong to their authors; see that page for their sources.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import hashlib
import http.client
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

from bench_data import DATA, ROOT

BASE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
KEPT = "What has arrived is kept; run the same command again later."


class Entry(NamedTuple):
    """One line of the table; an empty ``sha256_text`` means that none is known."""

    name: str
    url: str
    rows: int
    features: int
    classes: str
    use: str
    source: str
    sha256_text: str


class Refused(Exception):
    """A set that could not be had, with the reason."""


def table(path: Path = ROOT / "datasets" / "public.csv") -> dict[str, Entry]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {r["name"]: Entry(**{**r, "rows": int(r["rows"]), "features": int(r["features"])}) for r in rows}


def download(url: str, part: Path) -> None:
    """Appends what is missing of ``url`` to ``part``."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            done = done if answer.status == 206 else 0
            with open(part, "ab" if done else "wb") as out:
                shutil.copyfileobj(answer, out, 1 << 20)
            came, expected = part.stat().st_size - done, answer.headers["Content-Length"]
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing is missing
            raise Refused(f"{url}: the server says {error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise Refused(f"{url}: {reason}\nNo connection? {KEPT}") from error
    else:
        if expected is not None and came < int(expected):  # an end that comes early is no error to urllib
            raise Refused(f"{url}: the connection ended after {came} of {expected} bytes\n{KEPT}")


def unpack(part: Path, url: str, to: Path) -> None:
    """The set in ``part``, which came from ``url``: as it is, or by bzip2."""
    if not url.endswith(".bz2"):
        shutil.copyfile(part, to)
        return
    with bz2.open(part, "rb") as packed, open(to, "wb") as out:
        try:
            while text := packed.read(1 << 20):
                out.write(text)
        except (EOFError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of this machine: what has come is as good as before
                raise
            raise Refused(f"{part.name}: not whole ({error}); removed, run the same command again") from error


def check(entry: Entry, path: Path) -> str:
    """Refuses a file of another length or text; returns what was checked, in words."""
    digest, rows = hashlib.sha256(), 0
    with open(path, "rb") as file:
        for line in file:
            rows += 1
            digest.update(b" ".join(line.split()) + b"\n")
    if rows != entry.rows:
        raise Refused(f"{entry.name}: {rows} rows came, {entry.rows} expected")
    if not entry.sha256_text:
        return f"{rows} rows; no checksum known, its text has sha256 {digest.hexdigest()}"
    if digest.hexdigest() != entry.sha256_text:
        raise Refused(f"{entry.name}: sha256 of the text is {digest.hexdigest()}, {entry.sha256_text} expected")
    return f"{rows} rows, checksum right"


def fetch(entry: Entry, folder: Path, base: str) -> str:
    """Makes sure that ``folder`` holds the set; returns a line for the user."""
    final = folder / entry.name
    if final.exists():
        return f"{entry.name}: there already"
    folder.mkdir(parents=True, exist_ok=True)
    part, unpacked = folder / f"{entry.name}.part", folder / f"{entry.name}.unpacked"
    download(urljoin(base, entry.url), part)
    try:
        unpack(part, entry.url, unpacked)
        checked = check(entry, unpacked)
        unpacked.replace(final)
    except Refused:
        part.unlink(missing_ok=True)
        raise
    finally:
        unpacked.unlink(missing_ok=True)
    part.unlink()
    return f"{entry.name}: {checked}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Downloads public data sets into $SVMKIT_DATA, else datasets/cache.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all that benchmarks and slow tests use")
    parser.add_argument("--list", action="store_true", help="print the table and stop")
    parser.add_argument("--base", default=BASE, help="where the table's addresses start (default: LIBSVM's data page)")
    args = parser.parse_args()
    entries = table()
    if args.list:
        for e in entries.values():
            print(f"{e.name:30} {e.rows:>8} x {e.features:<8} {e.use:6} {e.source}")
        return 0
    unknown = [name for name in args.names if name not in entries]
    if unknown:
        print(f"no data set {unknown[0]!r}; --list prints those there are", file=sys.stderr)
        return 2
    for entry in [entries[n] for n in args.names] or [e for e in entries.values() if e.use]:
        try:
            print(fetch(entry, DATA, args.base), flush=True)
        except (Refused, OSError) as reason:  # of a connection, or of this machine's disk
            print(reason, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
