"""How weights are updated: the optimizers, the learning-rate schedules, and noise on the weights."""
