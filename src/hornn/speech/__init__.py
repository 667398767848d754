"""Speech: from recordings to words, by a network that names the state of a hidden Markov model at each frame."""
