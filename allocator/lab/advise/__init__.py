"""Advice: recorded days of somebody's own cluster, played under every policy, and judged.

`reading` makes days of journals, `playing` says what is tried and plays it, `measuring` and
`comparing` say what came of it, `limits` and `bottlenecks` look at what was recorded,
`recommending` judges, `words` and `page` show. `advising` does all of it; begin there.
"""
