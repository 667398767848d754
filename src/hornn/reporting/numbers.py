"""How numbers are written for a reader."""

UNVERIFIED_SIGN, DYNAMIC_SIGN, OTHER_CORPUS_SIGN = "†", "‡", "§"
AT_LIMIT_SIGN, AT_MOST_SIGN = "≥", "≤"
SIGN_MEANINGS = {
    UNVERIFIED_SIGN: "recalled or second-hand: not read in the paper itself",
    DYNAMIC_SIGN: "the published number used dynamic evaluation; the measured one did not",
    OTHER_CORPUS_SIGN: "published on another corpus: only the ranking of the rows compares, no number",
    AT_LIMIT_SIGN: "a seed reached the last step that was looked at: the true mean is this or more",
}

BOUND_NOTE = (
    f"{AT_LIMIT_SIGN}, {AT_MOST_SIGN} before a gain: a seed reached the last step that was looked at; "
    "the true gain is this or more, or this or less."
)


def to_digits(value: float) -> float:
    """To 7 significant digits, for other programs: more than any measurement has. Whole numbers stay."""
    return value if value.is_integer() else float(f"{value:.7g}")


def percent(share: float, digits: int = 1, signed: bool = False) -> str:
    """0.083 as `8.3 %`; never a minus before a zero."""
    rounded = round(100 * share, digits) + 0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f} %"


def format_number(key: str, value: float | None) -> str:
    """Whole for counts, three decimals for bits and nats, a share in percent, else one decimal."""
    if value is None:
        return ""
    if is_count(key):
        return f"{value:,.0f}"
    if key.endswith(("_accuracy", ".saturation")):
        return percent(value)
    digits = 3 if key.endswith(("_bpc", "_nll")) else 1
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never a minus before a zero


def format_bound(value: float) -> str:
    """`≥ 100`: a mean that is a lower bound."""
    return f"{AT_LIMIT_SIGN} {round(value, 1):g}"


def is_count(key: str) -> bool:
    return key == "num_parameters" or key.startswith("corpus.")


def format_published(value: float, key: str = "") -> str:
    """As printed, with commas in long whole numbers; a share, by the metric's `key`, in percent."""
    if key.endswith("_accuracy"):
        return percent(value, 2)
    return f"{value:,}" if isinstance(value, int) else str(value)
