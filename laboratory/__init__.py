"""The laboratory: an emulated master with frameworks and workloads, and experiments on it.

Begin with `master/emulated`, then `workloads/play`, which plays a scenario on it. Experiments,
papers and advice build on these. The laboratory may import every part of the sidecar
except `server`: real sidecars run as separate processes (`links/`).
"""

import allocator  # noqa: F401 - gRPC reads the environment that it sets when it is imported
