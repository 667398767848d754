"""Fast ways to compute what the readable code computes: the same parameters, the same numbers to rounding."""
