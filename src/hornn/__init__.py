"""Recurrent language models that can be compared honestly.

In Python: `load` a trained model, `build` a network by the words of the command line, read `results`. Each is imported
when it is first used, so that what needs no torch does not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hornn.research import build, results
    from hornn.use.model import Model, Score, load

__all__ = ["Model", "Score", "build", "load", "results"]

_PLACES = {
    "Model": "hornn.use.model",
    "Score": "hornn.use.model",
    "build": "hornn.research",
    "load": "hornn.use.model",
    "results": "hornn.research",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hornn' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_PLACES[name]), name)
