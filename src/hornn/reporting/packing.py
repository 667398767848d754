"""What the page's script knows of all runs, as small as it gets."""

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hornn.checks import is_number

EXACT = 2**53  # the largest integer up to which a script's numbers are exact


def packed(data: Mapping[str, Any]) -> str:
    """As JSON, deflated to 15 % of its size, in base64: a page cannot take any value in it for markup.

    Runs and rows are held by column, where alike values stand side by side.
    """
    rows = [{"address": address, **row} for address, row in data["rows"].items()]
    runs = [
        {**run, "curves": {key: differences(curve) for key, curve in run["curves"].items()}}
        for run in data["runs"]
    ]
    small = {**data, "runs": by_column(runs), "rows": by_column(rows)}
    text = json.dumps(small, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def differences(curve: Sequence[Any]) -> list[Any]:
    """[decimals, first value, second - first, ...]: integers that count the last decimal, as they deflate better.

    A value that is missing stays None. A curve with anything but exact numbers stays as it is, behind [None].
    """
    if not all(value is None or is_number(value) for value in curve):
        return [None, *curve]
    exact = [None if value is None else Decimal(str(value)).normalize() for value in curve]
    decimals = max([0, *(-int(value.as_tuple().exponent) for value in exact if value is not None)])
    wholes = [None if value is None else int(value.scaleb(decimals)) for value in exact]
    if any(abs(whole) > EXACT for whole in wholes if whole is not None):
        return [None, *curve]
    known = [0, *(whole for whole in wholes if whole is not None)]
    steps = iter([after - before for before, after in pairwise(known)])
    return [decimals, *(None if whole is None else next(steps) for whole in wholes)]


def by_column(mappings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Key -> the values of all, null where one has none; a column of mappings is by column, too."""
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    columns = {key: [mapping.get(key) for mapping in mappings] for key in keys}
    return {
        key: by_column([value or {} for value in column])
        if all(value is None or isinstance(value, Mapping) for value in column)
        else column
        for key, column in columns.items()
    }
