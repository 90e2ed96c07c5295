"""Advice from recorded days of an operator's cluster, replayed under every policy and compared.

`reading` makes days from journals, `playing` lists candidates and plays them, `measuring` and
`comparing` evaluate the runs, `limits` and `bottlenecks` analyse the recorded day, `recommending`
derives the advice, `words` and `page` present it. `advising` combines them; start there.
"""
