"""Kesidis et al.: six schedulers on Mesos, and per-server fairness.

References
----------
.. [1] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018.
"""
