"""How weights are updated: the optimizers, the schedules of their rate, and noise on the weights."""
