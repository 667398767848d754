"""The packages that speech needs beside the others, and the one pair of them that must not be loaded."""

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

REMEDY = "pip install -e '.[speech]'"
# The distribution of each module that speech imports.
PACKAGES = {
    "kaldifst": "kaldifst",
    "kaldi_decoder": "kaldi-decoder",
    "kaldi_hmm_gmm": "kaldi-hmm-gmm",
    "kaldi_native_fbank": "kaldi-native-fbank",
    "soundfile": "soundfile",
    "jiwer": "jiwer",
}
KALDIFST = "1.7."  # kaldi-hmm-gmm 1.1.4 and kaldi-decoder 0.2.11 are built against it


def require_packages() -> None:
    """Raise ValueError, with the command that mends it, where a package is missing or kaldifst is another one.

    kaldi-hmm-gmm does not say which kaldifst it needs, and beside 1.8 its import waits for ever: so the versions are
    read before anything is imported.
    """
    for package in PACKAGES.values():
        try:
            found = version(package)
        except PackageNotFoundError:
            raise ValueError(f"speech needs the package {package}, which is missing: {REMEDY}") from None
        if package == "kaldifst" and not found.startswith(KALDIFST):
            raise ValueError(
                f"kaldifst {found} is installed, and speech needs {KALDIFST}x, beside which alone kaldi-hmm-gmm can "
                f"be imported: {REMEDY}"
            )


@cache
def load(module: str) -> ModuleType:
    """One of the modules of PACKAGES. Raises what `require_packages` raises."""
    require_packages()
    assert module in PACKAGES, module
    return import_module(module)
