"""Tables, figures and the report: pure functions of sweep files and result files. No torch here.

The way down: recipe, sweeps -> runs -> scores, lines -> seeds, order, claims -> tables -> grid, notes, overview ->
markdown, latex, comma_separated, excerpts, costs; panels, svg -> figures, ranks, glance -> table_pages, page ->
commands, which `src/report.py` calls.
"""
