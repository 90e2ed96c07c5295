"""A cluster whose tasks read data: disks, racks, shared links, and schedulers.

`topology` describes the links and moves data over them, `workflow` describes the tasks of a job and
their inputs, `cluster` runs them. `schedulers` decide what runs where.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009.
"""
