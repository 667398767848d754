"""Recurrent cells: one step of a recurrence each; `hornn.scan` owns time."""
