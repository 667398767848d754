"""Corpora, vocabularies, the token cache and the streams that feed the recurrent networks."""
