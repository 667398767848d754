"""Tables, figures and the report: pure functions of sweep files and result files. No torch here.

The way down; a module imports from its own line and those above it:

    numbers, schema, inheritance, grid_rows, claimed, departures   what a sweep file says, and what a run is meant to be
    sweeps                                                         the sweep files, read
    running, runs, unwritten                                       the runs of each row; sweeps without a file
    scores, lines, seeds, order, utterances, claims                a row's numbers, and what they say of the paper
    tables                                                         all of it, one table a sweep
    grid, notes, overview                                          a table as cells and sentences
    markdown, latex, comma_separated, json_table, excerpts, costs  a table as a file or as a block of a page
    svg, axes, panels, row_styles                                  what figures are drawn with
    listening, run_data                                            what the page's script knows of the runs
    cost_panels, axis_figures, ranks, figures, memory              the figures of a table
    glance, studies, scoreboard                                    the figures of all tables, searches and claims
    page, table_pages                                              the report's page; the pages beside the results
    server, commands                                               what `src/report.py` calls
"""
