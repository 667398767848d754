"""How a result departs from what its row asks for."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hornn.recipe import flatten
from hornn.run.identity import INIT_FROM, canonical, is_of, name_of, neutral_values

DEPARTS_FROM_RECIPE = "departs from the recipe"


class Recipe(NamedTuple):
    """What a row's run is meant to be: the choices and the values that decide its numbers.

    texts: key -> the path of a text of one's own, which the row names. The config does not hold it.
    """

    choices: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}
    texts: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """Equal for rows that are the same run, whatever sweep they stand in."""
        return name_of(self.choices, {**self.config, **self.texts})


def departures(recipe: Recipe, result: Mapping[str, Any]) -> list[str]:
    """Where a result is not what was meant: `trainer.max_epochs=15, not 20`.

    Keys that the result does not hold are passed over: they have no effect, or are younger than the result. Of the
    weights that a run starts from only their presence counts.
    """
    if not recipe.config:  # of a sweep without a file nobody says what was meant
        return []
    choices, config = result.get("choices") or {}, flatten(result.get("config") or {})
    meant, neutral = flatten(recipe.config), neutral_values(choices)
    if config.get(INIT_FROM) and meant.get(INIT_FROM):
        meant[INIT_FROM] = config[INIT_FROM]
    other = [
        f"{key}={held[key]}, not {value}"
        for held, wanted in ((choices, recipe.choices), (config, meant))
        for key, value in wanted.items()
        if key in held and canonical(held[key]) != canonical(value)
    ]
    if recipe.texts and not is_of(recipe.texts, result):
        other.append(f"another text than {', '.join(f'{key}={path}' for key, path in recipe.texts.items())}")
    return other + [
        f"{key}={value}, not given"
        for key, value in config.items()
        if key not in meant and value is not None and value != neutral.get(key, ...) and key != "data.text"
    ]
