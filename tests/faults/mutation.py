"""Damage of files, by dice: of bytes, of lines and of nested values. The same dice do the same."""

import copy
import random
from collections.abc import Iterator
from functools import reduce
from typing import Any

NUMBERS = (
    0,
    -1,
    1,
    1.5,
    1e308,
    -1e308,
    2**31,
    2**63,
    -(2**63),
    10**30,
    float("nan"),
    float("inf"),
    float("-inf"),
)
TEXTS = (
    "",
    "x",
    "nan",
    "${oc.env:HOME}",
    "../..",
    "/etc/passwd",
    "a\nb",
    "\x00",
    "\N{SNOWMAN}",
    "[",
    "1e999",
    "???",
)
DEEP: list[Any] = reduce(lambda inner, _: [inner], range(100), [])
STRANGE = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"_target_": "os.getcwd"},
    DEEP,
    *NUMBERS,
    *TEXTS,
)
WORDS = (
    "",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-1",
    "0",
    "99999999999999999999",
    "\x00",
    "\t",
    "\\end\\",
    "<s>",
    "</s>",
    "_",
)


def damage_bytes(content: bytes, dice: random.Random) -> bytes:
    """One to four pieces of damage."""
    data = bytearray(content)
    for _ in range(dice.randint(1, 4)):
        place, length = dice.randrange(len(data) + 1), dice.choice((1, 2, 8, 100, 1000))
        match dice.randrange(6):
            case 0 if data:
                data[place % len(data)] ^= 1 << dice.randrange(8)
            case 1:
                del data[place:]
            case 2:
                del data[place : place + length]
            case 3:
                data[place:place] = dice.randbytes(length)
            case 4:
                data[place:place] = data[: dice.randrange(len(data) + 1)]
            case _:
                data[place : place + length] = bytes([dice.choice((0, 10, 32, 255))]) * length
    return bytes(data)


def damage_lines(content: bytes, dice: random.Random) -> bytes:
    """One to three lines that are moved, repeated, dropped, or hold another word."""
    lines = content.split(b"\n")
    for _ in range(dice.randint(1, 3)):
        place, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                lines[place], lines[other] = lines[other], lines[place]
            case 1:
                lines.insert(place, lines[other])
            case 2 if len(lines) > 1:
                del lines[place]
            case _:
                words = lines[place].split(b" ")
                words[dice.randrange(len(words))] = dice.choice(WORDS).encode()
                lines[place] = b" ".join(words)
    return b"\n".join(lines)


def damage_values(tree: Any, dice: random.Random) -> Any:
    """One or two places of nested dicts and lists that are gone, hold something strange, or hold one thing more."""
    tree = copy.deepcopy(tree)
    for _ in range(dice.randint(1, 2)):
        places = list(places_of(tree))
        if not places:
            return strange(dice)
        # a short path as often as a long one, for there are many leaves and few branches
        depth = dice.choice(sorted({len(path) for path in places}))
        *parents, key = dice.choice([path for path in places if len(path) == depth])
        node = tree
        for parent in parents:
            node = node[parent]
        match dice.randrange(4):
            case 0:
                del node[key]
            case 1 if isinstance(node, dict):
                node[dice.choice(("x", "_target_", "", "seed"))] = strange(dice)
            case _:
                node[key] = strange(dice)
    return tree


def strange(dice: random.Random) -> Any:
    return copy.deepcopy(dice.choice(STRANGE))


def places_of(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield (*path, key)
            yield from places_of(tree[key], (*path, key))
