"""Makes scenarios from recorded real downloads, and compares predictions with the recordings.

`recording` reads what `multilink get --run-dir` wrote. `capture` reads tcpdump's captures. Both
give a `link_history` for each link. `capacity` estimates the link's capacity from its history.
`making` makes a scenario of the capacities.
"""
