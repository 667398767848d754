"""The test oracle: the recurrences transcribed from the papers in NumPy, slow and obvious.

One function per recurrence, float64, one batch column at a time, in the papers' symbols. Nothing in here
imports or resembles the implementation under test. Every function reads

    recurrence(x, state, [f,] **weights) -> (y, state)

with x (T, B, I), the state a tuple of arrays in the order of the cell's state, f the activation, the weights
(out, in) and y (T, B, H). A bias that is left out is zero.
"""
