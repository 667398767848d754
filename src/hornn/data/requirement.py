"""Packages that some choices need and no installation brings by itself."""

from importlib.util import find_spec


def require_package(package: str, what: str) -> None:
    """Raise ValueError, with the command that installs it, where `what` needs a package that is not there."""
    if find_spec(package) is None:
        raise ValueError(f"{what} needs the package {package}: pip install {package}")
