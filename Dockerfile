# The sidecar's image, built by `make image` from the wheels' sources alone (.dockerignore). The target
# `demo` also contains the laboratory, with which deploy/demo.compose.yaml emulates a master.

FROM docker.io/library/python:3.11-slim-bookworm AS build
# Build the environment in a separate stage, so that build files and pip's cache stay out of the image.
RUN python -m venv /opt/mesos-allocator
ENV PATH=/opt/mesos-allocator/bin:$PATH
WORKDIR /src
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY allocator allocator
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && pip install --no-cache-dir --no-deps /wheels/*.whl \
 && mesos-allocator --help >/dev/null
# Compile the loops for any x86-64 or arm64 processor, so that containers need not.
ENV NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/loops
RUN mesos-allocator warm

# `demo soak` needs only the sidecar's libraries, unlike other commands of the laboratory.
FROM build AS build-demo
COPY laboratory laboratory
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels ./laboratory \
 && pip install --no-cache-dir --no-deps /wheels/mesos_allocator_lab-*.whl \
 && allocator-lab demo soak --help >/dev/null

FROM docker.io/library/python:3.11-slim-bookworm AS sidecar
LABEL org.opencontainers.image.title="mesos-allocator" \
      org.opencontainers.image.description="Decides, for an Apache Mesos master, who is offered which agent's resources" \
      org.opencontainers.image.licenses="Apache-2.0"
# The group is root, as for any other user (`--user 12345`); files are writable by the group.
RUN useradd --system --uid 5056 --gid root --home-dir /var/lib/mesos-allocator --create-home \
    mesos-allocator
COPY --from=build /opt/mesos-allocator /opt/mesos-allocator
# Other users, and containers with a read-only file system, use a private copy of the compiled loops.
COPY --from=build --chown=mesos-allocator /loops /var/lib/mesos-allocator/loops
# Directories for the socket, which the master's container mounts, and for persistent files.
RUN install --directory --owner mesos-allocator --group root --mode 0770 \
    /run/mesos-allocator /var/lib/mesos-allocator/state
# Prometheus scrapes from outside. Clients of gRPC control the sidecar, so it listens only on a socket
# in a shared directory, and on the container's loopback. To listen on a port, with TLS, set
# MESOS_ALLOCATOR_LISTEN__TARGETS, or listen.targets in the configuration file.
ENV PATH=/opt/mesos-allocator/bin:$PATH \
    MESOS_ALLOCATOR_HTTP__HOST=0.0.0.0 \
    MESOS_ALLOCATOR_LISTEN__TARGETS=127.0.0.1:5056,unix:/run/mesos-allocator/allocator.sock \
    STATE_DIRECTORY=/var/lib/mesos-allocator/state \
    PYTHONUNBUFFERED=1 \
    NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/var/lib/mesos-allocator/loops
USER mesos-allocator
WORKDIR /var/lib/mesos-allocator
# HTTP for /metrics, /healthz and /readyz.
EXPOSE 5057
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:5057/healthz', timeout=4)"]
ENTRYPOINT ["mesos-allocator"]
CMD ["serve"]

FROM sidecar AS demo
COPY --from=build-demo /opt/mesos-allocator /opt/mesos-allocator

# The default target.
FROM sidecar
