"""How numbers are written for a reader."""


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
    return f"{value:.3f}" if key.endswith(("_bpc", "_nll")) else f"{value:.1f}"


def is_count(key: str) -> bool:
    return key == "num_parameters" or key.startswith("corpus.")


def format_published(value: float) -> str:
    """As printed, with commas in long whole numbers."""
    return f"{value:,}" if isinstance(value, int) else str(value)
