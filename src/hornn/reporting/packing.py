"""What the page's script knows of all runs, as small as it gets."""

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any


def packed(data: Mapping[str, Any]) -> str:
    """As JSON, deflated to 15 % of its size, in base64: a page cannot take any value in it for markup.

    Runs and rows are held by column, where alike values stand side by side.
    """
    rows = [{"address": address, **row} for address, row in data["rows"].items()]
    small = {**data, "runs": by_column(data["runs"]), "rows": by_column(rows)}
    text = json.dumps(small, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return b64encode(zlib.compress(text.encode(), 9)).decode()


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
