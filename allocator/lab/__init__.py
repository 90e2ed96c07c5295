"""The laboratory: an emulated master, with frameworks and workloads, and what is found out with it.

Begin with `master/emulated`, then `workloads/play`, which plays a scenario on it. Experiments,
papers, advice and torture stand on top. It may import all that the sidecar is made of, but for
`server`: real sidecars are processes of their own (`links/`).
"""
