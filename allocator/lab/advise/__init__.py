"""Advice: recorded days of somebody's own cluster, played under every policy, and judged.

`reading` makes days of journals, `candidates` says what is tried, `playing` plays it, `measuring`
and `comparing` say what came of it, `limits` and `bottlenecks` look at what was recorded,
`recommending` judges, and `page` shows. `advising` does all of it; begin there.
"""
