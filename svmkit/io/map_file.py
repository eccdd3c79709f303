"""Feature maps as JSON files: every number reads back exactly."""

from __future__ import annotations

import json

from svmkit import maps
from svmkit.errors import DataError, ModelError
from svmkit.io.inputs import read_bytes
from svmkit.io.outputs import atomic_output


def write_map(path: str, feature_map: maps.FeatureMap) -> None:
    """Writes the map; the file is whole or untouched. Raises OutputError where it cannot be written."""
    with atomic_output(path) as out:
        out.write(json.dumps(feature_map.to_dict()).encode("ascii") + b"\n")


def read_map(path: str) -> maps.FeatureMap:
    """The map in the file. Raises ModelError where it cannot be read, or holds none."""
    try:
        stored = json.loads(read_bytes(path))
    except DataError as error:
        raise ModelError(f"can't open map file {path}: {error.detail}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a map written by svmkit approx --save: {error}") from None
    if not isinstance(stored, dict):
        raise ModelError(f"{path}: not a map written by svmkit approx --save")
    try:
        return maps.from_dict(stored)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
