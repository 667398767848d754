"""Recurrent language models that can be compared honestly.

In Python: `load` gives a trained model, `make_network` a fresh one, `results` what runs have left. Each is imported
when it is first used, so that what needs no torch does not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hornn.research import make_network, results
    from hornn.use.model import Model, Score, load

__all__ = ["Model", "Score", "load", "make_network", "results"]

_PLACES = {
    "Model": "hornn.use.model",
    "Score": "hornn.use.model",
    "make_network": "hornn.research",
    "load": "hornn.use.model",
    "results": "hornn.research",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hornn' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_PLACES[name]), name)
