"""The benchmark: our code beside what a user would otherwise take, in turn in one process, as ratios.

A row times two ways to do the same work (`work`), round by round (`meter`): a round is one sample of each, and its
ratio is ours / other. Rounds in which other processes took more than `meter.QUIET` of a core are dropped. Times are
medians over the rounds kept, the ratio is the median of their ratios, the spread its least and largest. `sections`
says which rows there are, `tables` shows them, `program` runs it all.
"""
