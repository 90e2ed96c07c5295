"""A cluster whose tasks read data: disks, racks and links that transfers share, and schedulers.

`topology` says which links there are, `transfers` moves data over them, `inputs` what a task reads
and how far it is, `workflow` which tasks a job has, `cluster` runs them. `queue_scheduler` and
`flow_scheduler` decide what runs where.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009.
"""
