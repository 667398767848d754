from collections.abc import Callable
from typing import Any

import pytest

from baselines.counted_folder import Folder


@pytest.fixture(scope="package")
def folder(command: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("counting"), command)
