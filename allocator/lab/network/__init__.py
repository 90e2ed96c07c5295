"""A cluster whose tasks read data: disks, racks and links that transfers share, and schedulers.

`topology` says which links there are and moves data over them, `workflow` which tasks a job has and
what they read, `cluster` runs them. `schedulers` decide what runs where.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009.
"""
