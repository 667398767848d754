"""Arrays that took long to compute, kept in one file."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hornn.writing import replacing


class KeptArrays:
    """One file below `folder` for all that decides the arrays, the `key`; its name has the key's SHA-256, `digest`.

    The file is a ZIP of arrays, without pickle: nothing in it is run. It is moved into place whole.
    """

    def __init__(self, folder: Path, name: str, key: Mapping[str, Any]) -> None:
        self.key = json.dumps(key)
        self.digest = hashlib.sha256(self.key.encode()).hexdigest()
        self.path = folder / f"{name}-{self.digest[:16]}.npz"

    def read(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """What is said of the arrays, and the arrays; None where the file is absent or damaged."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(str(arrays.pop("about")))
            return (about, arrays) if about["key"] == self.key else None
        except (
            OSError,
            EOFError,
            ValueError,
            KeyError,
            TypeError,
            RuntimeError,
            zipfile.BadZipFile,
            zlib.error,
        ):
            return None  # RuntimeError: an entry seems to be encrypted, or packed in an unknown way

    def write(self, what: str, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Raises OSError, which names `what`, where the file cannot be written."""
        said = np.array(json.dumps({"key": self.key, **about}))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                np.savez(file, about=said, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise OSError(
                f"cannot write the {what} into {self.path.parent} ({error}): "
                "set data.cache_dir to a folder that can be written"
            ) from error
