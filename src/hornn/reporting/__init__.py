"""Tables, figures and the report: pure functions of sweep files and result files. No torch here."""
