"""Output layers: from the features of a chunk to the likelihood of its targets."""
