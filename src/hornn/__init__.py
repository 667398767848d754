"""Recurrent language models that can be compared honestly."""
