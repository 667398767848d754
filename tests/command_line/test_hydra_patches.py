"""Canaries for new releases of Hydra: each private name is there, as it was, and each patch takes effect."""

import argparse
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import hydra
import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.errors import ConfigCompositionException, MissingConfigException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf

RELEASE = f"hydra-core {hydra.__version__}"
REMEDY = "see src/hornn/command_line/hydra_patches.py"

# Private name -> its parameters.
CALLED = {
    "hydra._internal.config_loader_impl:ConfigLoaderImpl": ["config_search_path"],
    "hydra._internal.config_loader_impl:ConfigLoaderImpl.load_configuration": [
        "self",
        "config_name",
        "overrides",
        "run_mode",
        "from_shell",
        "validate_sweep_overrides",
    ],
    "hydra._internal.config_loader_impl:ConfigLoaderImpl.compute_defaults_list": [
        "self",
        "config_name",
        "overrides",
        "run_mode",
    ],
    "hydra._internal.config_loader_impl:ConfigLoaderImpl.list_groups": ["self", "parent_name"],
    "hydra._internal.config_loader_impl:ConfigLoaderImpl.get_group_options": [
        "self",
        "group_name",
        "results_filter",
        "config_name",
        "overrides",
    ],
    "hydra._internal.config_loader_impl:ConfigLoaderImpl._load_configuration_impl": [
        "self",
        "config_name",
        "overrides",
        "run_mode",
        "from_shell",
        "validate_sweep_overrides",
    ],
    "hydra._internal.config_loader_impl:ConfigLoaderImpl.validate_sweep_overrides_legal": [
        "overrides",
        "run_mode",
        "from_shell",
    ],
    "hydra._internal.hydra:ConfigLoaderImpl": ["config_search_path"],
    "hydra._internal.hydra:Hydra.get_mode": ["self", "config_name", "overrides"],
    "hydra._internal.utils:run_and_report": ["func"],
    "hydra._internal.utils:get_args_parser": [],
    "hornn.command_line.hydra_patches:_is_hydras_own": ["clazz"],  # Plugins.is_in_toplevel_plugins_module
}


@pytest.fixture
def patches() -> ModuleType:
    """The module, imported late: where a name is gone, the test of that name says so too."""
    return importlib.import_module("hornn.command_line.hydra_patches")


@pytest.fixture
def run_hydra(patches: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a task under `hydra.main` and our patches, on a config without keys."""

    def run(
        task: Callable[[DictConfig], Any],
        *words: str,
        loader: type | None = None,
        annotate: Callable[[JobReturn, BaseException], None] = lambda job, error: None,
        file: str = "{}",
    ) -> None:
        quiet = ["hydra.output_subdir=null", "hydra/job_logging=none", "hydra/hydra_logging=none"]
        (tmp_path / "toy.yaml").write_text(file)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["toy.py", "hydra.run.dir=.", *quiet, *words])
        with patches.patched(loader or patches.Loader, annotate):
            hydra.main(version_base="1.3", config_path=str(tmp_path), config_name="toy")(task)()

    return run


@pytest.fixture
def loader(patches: ModuleType, app: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Our loader on the configs of the small application."""
    monkeypatch.syspath_prepend(str(app))
    with (
        patches.patched(patches.Loader, lambda job, error: None),
        initialize_config_dir(str(app / "conf"), version_base="1.3"),
    ):
        yield GlobalHydra.instance().config_loader()


@pytest.mark.parametrize("name", CALLED)
def test_private_name_is_as_it_was(name: str) -> None:
    try:
        found = list(inspect.signature(pkgutil.resolve_name(name)).parameters)
    except (ImportError, AttributeError) as error:
        pytest.fail(f"{RELEASE} has no {name}: {error}; {REMEDY}")
    assert found == CALLED[name], f"{RELEASE} calls {name} with other parameters; {REMEDY}"


def test_result_of_a_job_is_a_property_over_a_field() -> None:
    assert isinstance(vars(JobReturn).get("return_value"), property), (
        f"{RELEASE}: JobReturn.return_value is no property; {REMEDY}"
    )
    assert hasattr(JobReturn(), "_return_value"), f"{RELEASE} has no JobReturn._return_value; {REMEDY}"


def test_main_composes_with_our_loader(patches: ModuleType, run_hydra: Callable[..., None]) -> None:
    composed = []

    class Recording(patches.Loader):
        def load_configuration(self, *args: Any, **kwargs: Any) -> DictConfig:
            composed.append(args)
            return super().load_configuration(*args, **kwargs)

    run_hydra(lambda cfg: None, loader=Recording)
    assert composed, (
        f"{RELEASE}: hydra.main takes its loader from elsewhere than hydra._internal.hydra; {REMEDY}"
    )


@pytest.mark.parametrize(
    ("file", "word", "modes"),
    [
        ("{}", "+a=1", ["RUN"]),
        ("{}", "hydra.mode=MULTIRUN", ["MULTIRUN"]),
        ("hydra: {mode: MULTIRUN}", "+a=1,2", ["MULTIRUN"] * 2),
        ("hydra: {mode: RUN}", "+a=1", ["RUN"]),
    ],
)
def test_one_composition_tells_the_mode_and_serves_the_run(
    run_hydra: Callable[..., None], patches: ModuleType, file: str, word: str, modes: list[str]
) -> None:
    composed, seen = [], []

    class Recording(patches.Loader):
        def _load_configuration_impl(self, *args: Any, **kwargs: Any) -> DictConfig:
            composed.append(args)
            return super()._load_configuration_impl(*args, **kwargs)

    run_hydra(
        lambda cfg: seen.append(HydraConfig.get()), word, "hydra.sweep.dir=.", loader=Recording, file=file
    )
    assert [job.mode.name for job in seen] == modes
    if modes == ["RUN"]:
        assert len(composed) == 1, f"{RELEASE} composes a run in another way; {REMEDY}"
        assert list(seen[0].overrides.hydra).count("hydra.mode=RUN") == (file == "{}")


def test_a_swept_value_needs_a_multirun(run_hydra: Callable[..., None]) -> None:
    with pytest.raises(ConfigCompositionException, match="add --multirun"):
        run_hydra(lambda cfg: None, "+a=1,2")


def test_error_of_the_composition_is_not_printed(
    run_hydra: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((ConfigCompositionException, SystemExit)) as caught:
        run_hydra(lambda cfg: None, "absent=1")
    assert isinstance(caught.value, ConfigCompositionException), (
        f"{RELEASE} prints errors elsewhere than in hydra._internal.utils.run_and_report; {REMEDY}"
    )
    assert capsys.readouterr().err == ""


def test_error_of_a_job_comes_out_annotated_and_is_not_printed(
    run_hydra: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(cfg: DictConfig) -> None:
        raise ValueError("in the task")

    def annotate(job: JobReturn, error: BaseException) -> None:
        error.add_note(f"overrides {job.overrides}, mode {job.hydra_cfg.hydra.mode}, cfg {job.cfg}")

    with pytest.raises(ValueError, match="in the task") as caught:
        run_hydra(fail, "+absent=1", annotate=annotate)
    notes = getattr(caught.value, "__notes__", [])
    assert notes == [f"overrides ['+absent=1'], mode {RunMode.RUN}, cfg {{'absent': 1}}"], (
        f"{RELEASE}: JobReturn.return_value is not what raises a job's error; {REMEDY}"
    )
    assert capsys.readouterr().err == "", f"{RELEASE} prints a job's error elsewhere; {REMEDY}"


def test_patches_end_with_their_block(patches: ModuleType) -> None:
    before = [pkgutil.resolve_name(name) for name in CALLED if name.startswith("hydra._internal.")] + [
        JobReturn.return_value
    ]
    with patches.patched(patches.Loader, lambda job, error: None):
        assert JobReturn.return_value is not before[-1]
    after = [pkgutil.resolve_name(name) for name in CALLED if name.startswith("hydra._internal.")] + [
        JobReturn.return_value
    ]
    assert after == before


def test_options_are_read_by_the_parser_of_main(patches: ModuleType) -> None:
    taken = vars(sys.modules["hydra.main"]).get("get_args_parser")
    assert taken is pkgutil.resolve_name("hydra._internal.utils:get_args_parser"), (
        f"{RELEASE}: hydra.main reads its options by another parser; {REMEDY}"
    )
    assert patches.options_parser().parse_known_args(["a=1", "-m", "--absent"])[1] == ["--absent"]
    with pytest.raises(argparse.ArgumentError, match="invalid choice"):
        patches.options_parser().parse_known_args(["--cfg", "everything"])


class ToyLauncher(Launcher):
    """A plugin outside of Hydra's packages."""

    def setup(self, **context: Any) -> None:
        pass

    def launch(self, job_overrides: Any, initial_job_idx: int) -> list[JobReturn]:
        return []


def test_plugins_of_ours_are_admitted(patches: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Plugins.instance()
    own = patches._is_hydras_own
    monkeypatch.setattr(Plugins, "is_in_toplevel_plugins_module", staticmethod(own))
    monkeypatch.setattr(known, "class_name_to_class", dict(known.class_name_to_class))
    monkeypatch.setattr(
        known,
        "plugin_type_to_subclass_list",
        {k: list(v) for k, v in known.plugin_type_to_subclass_list.items()},
    )
    known.register(ToyLauncher)
    config = OmegaConf.create({"hydra": {"launcher": {"_target_": f"{__name__}.ToyLauncher"}}})
    context = HydraContext(config_loader=None, callbacks=None)  # type: ignore[arg-type]

    def instantiate() -> Launcher:
        return known.instantiate_launcher(hydra_context=context, task_function=print, config=config)

    with pytest.raises(RuntimeError, match="Invalid plugin"):  # else the patch is needed no longer
        instantiate()
    patches.admit_plugins(__name__)
    try:
        assert isinstance(instantiate(), ToyLauncher)
    except RuntimeError as error:
        pytest.fail(f"{RELEASE} asks something else whether a plugin may be: {error}; {REMEDY}")
    assert known.is_in_toplevel_plugins_module("hydra._internal.core_plugins.basic_launcher.BasicLauncher")


def test_loader_tells_groups_choices_and_unknown_keys(patches: ModuleType, loader: Any) -> None:
    assert isinstance(loader, patches.Loader)
    assert (loader.has_group("model"), loader.has_group("seed")) == (True, False), (
        f"{RELEASE}: ConfigLoaderImpl.repository tells no groups; {REMEDY}"
    )
    assert {"model", "trainer"} <= set(patches.known_choices(loader, "config", [])), (
        f"{RELEASE}: a defaults list has no overrides.known_choices; {REMEDY}"
    )
    for word, key in (
        ("model.absent=1", "model.absent"),
        ("absent=1", "absent"),
        ("~model.absent", "model.absent"),
    ):
        with pytest.raises(ConfigCompositionException) as caught:
            loader.load_configuration("config", [word], RunMode.RUN)
        assert patches.Loader.unknown_key(caught.value) == key, (
            f"{RELEASE} words an unknown key otherwise: {caught.value}; {REMEDY}"
        )
    with pytest.raises(MissingConfigException) as missing:
        loader.load_configuration("config", ["model=absent"], RunMode.RUN)
    assert missing.value.missing_cfg_file == "model/absent"


def test_no_other_file_reaches_into_hydra() -> None:
    source = Path(__file__).parents[2] / "src"
    reaching = {
        path.name
        for path in source.rglob("*.py")
        if any(word in path.read_text() for word in ("hydra._internal", "is_in_toplevel_plugins_module"))
    }
    assert reaching == {"hydra_patches.py"}
