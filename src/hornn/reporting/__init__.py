"""Tables, figures and the report: pure functions of sweep files and result files. No torch here.

The way down; a module imports from its own line and those above it:

    numbers, schema, inheritance, departures        what a sweep file says, and what a run is meant to be
    claimed, configs, grid_rows, sweeps             the sweep files, read
    running, runs                                   the runs of each row
    scores, lines, variances, utterances, seeds     a row's numbers, and how sure they are
    gains, order, claims                            what they say of the paper
    tables, run_numbers, unwritten                  all of it, one table a sweep; sweeps without a file
    grid, notes, overview                           a table as cells and sentences
    svg, axes, panels, row_styles                   what figures are drawn with
    cost_panels, axis_figures, ranks, figures       the figures of a table
    listening, memory, scoreboard, studies          the figures of recordings, memory, claims and searches
    markdown, latex, comma_separated, json_table    a table as a file
    excerpts, costs                                 blocks of pages
    packing, run_data                               what the page's script knows of the runs
    glance, page, table_pages                       the figure of all tables, the report, pages beside results
    server, commands                                what `src/report.py` calls
"""
