# The sidecar's image. `make image` builds it; the wheels' sources are all that enters (.dockerignore).
# The target `demo` has the laboratory, too: deploy/demo.compose.yaml plays an emulated master with it.

FROM docker.io/library/python:3.11-slim-bookworm AS build
# The environment is made here and copied, so that the compiler's leavings and pip's cache stay here.
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
# The loops are compiled here, for any x86-64 or arm64: a container starts with them.
ENV NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/loops
RUN mesos-allocator warm

# `demo soak` needs no more libraries than the sidecar; other commands of the laboratory do.
FROM build AS build-demo
COPY laboratory laboratory
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels ./laboratory \
 && pip install --no-cache-dir --no-deps /wheels/mesos_allocator_lab-*.whl \
 && allocator-lab demo soak --help >/dev/null

FROM docker.io/library/python:3.11-slim-bookworm AS sidecar
LABEL org.opencontainers.image.title="mesos-allocator" \
      org.opencontainers.image.description="Decides, for an Apache Mesos master, who is offered which agent's resources" \
      org.opencontainers.image.licenses="Apache-2.0"
# Its group is root, as that of any other user who runs it (`--user 12345`): what it may write is the
# group's.
RUN useradd --system --uid 5056 --gid root --home-dir /var/lib/mesos-allocator --create-home \
    mesos-allocator
COPY --from=build /opt/mesos-allocator /opt/mesos-allocator
# Where another user runs it, or all is read-only, it makes a private copy of these.
COPY --from=build --chown=mesos-allocator /loops /var/lib/mesos-allocator/loops
# For the socket, which the master's container mounts, and for what outlives this container.
RUN install --directory --owner mesos-allocator --group root --mode 0770 \
    /run/mesos-allocator /var/lib/mesos-allocator/state
# Prometheus scrapes from outside. gRPC commands the sidecar: it is reached by a socket in a
# directory that is shared, and from within. A port for others is the operator's choice, with TLS:
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

# What is built if no target is named.
FROM sidecar
