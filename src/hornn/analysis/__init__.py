"""How far a trained network of text looks back, and what its signals do: measured on its weights.

gradients, signals, known_words and factors measure one thing each; stages finds the weights of a run over time; analyse
is the command. docs/memory.md has the equations.
"""
