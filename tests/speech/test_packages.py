"""The packages of speech: they load in time; one that is missing or does not fit is named before any import."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

from hornn.speech import packages


def test_all_load_together_within_a_time_limit() -> None:
    """A process of its own: a pair that does not fit waits for ever."""
    done = subprocess.run([sys.executable, "-c", f"import {', '.join(packages.PACKAGES)}"], timeout=30)
    assert done.returncode == 0


@pytest.mark.parametrize("package", packages.PACKAGES.values())
def test_a_missing_package_is_named_with_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(packages, "version", without)
    with pytest.raises(ValueError, match=rf"needs the package {package}, .*\[speech\]"):
        packages.require_packages()


def test_a_kaldifst_that_would_hang_is_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "version", lambda name: "1.8.3" if name == "kaldifst" else version(name))
    monkeypatch.setattr(packages, "import_module", lambda name: pytest.fail(f"{name} was imported"))
    with pytest.raises(ValueError, match=r"kaldifst 1\.8\.3 is installed, and speech needs 1\.7\.x"):
        packages.load.__wrapped__("kaldi_hmm_gmm")
