"""What the `_target_` of a config node names, and the parameters that it takes."""

import inspect
import pkgutil
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from hornn.shown import first_line


def resolve_target(target: Any, key: str) -> Callable[..., Any]:
    """The class or function that a `_target_` names; key: where that stands.

    Raises ValueError where its module cannot be imported, whatever it raises, and where it is absent or no callable.
    """
    try:
        found = pkgutil.resolve_name(str(target))
    except (Exception, SystemExit) as error:
        raise ValueError(f"cannot use {key} {target!r}: {_describe(error)}") from error
    if not callable(found):
        raise ValueError(
            f"cannot use {key} {target!r}: it is of type {type(found).__name__}, not a callable: name a class"
        )
    return found


def parameters_of(target: Any, key: str) -> Mapping[str, inspect.Parameter] | None:
    """The parameters of what a `_target_` names; None of a builtin that does not tell them. Errors: see above."""
    found = resolve_target(target, key)
    try:
        return inspect.signature(found).parameters
    except ValueError:
        return None


def _describe(error: BaseException) -> str:
    """What the import of a module says; of an error that the code of a module raised, also its type and place."""
    place, said = traceback.extract_tb(error.__traceback__)[-1], str(error)
    if place.filename != pkgutil.__file__ and not place.filename.startswith("<frozen importlib"):
        said = ": ".join(dict.fromkeys((type(error).__name__, first_line(error))))
        said = f"{said} ({place.filename}:{place.lineno})"
    elif isinstance(error, ValueError):
        said = f"{said}: write MODULE.NAME"
    return f"{said}: put its folder on PYTHONPATH" if isinstance(error, ModuleNotFoundError) else said
