"""A cluster whose tasks read data: disks, racks, shared links, and schedulers.

`topology` describes links and moves data over them, `workflow` describes the tasks of a job and
their inputs, `cluster` runs them, and `schedulers` place tasks on computers.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009.
"""
