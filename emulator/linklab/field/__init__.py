"""Real downloads: what they show of links, scenarios made of that, and predictions beside them.

`course` is what multilink's record or a capture saw of a link, `capacity` what follows of the link
itself, `making` a scenario of it. `recording` reads what `multilink get --run-dir` wrote, `capture`
what tcpdump did.
"""
