"""PromQL expressions that dashboards share; ``$instance`` selects the sidecar."""

ONE = '{instance=~"$instance"}'
"""Selects the series of the selected sidecar."""


def metric(name: str, **labels: str) -> str:
    """A metric of the selected sidecar."""
    more = "".join(f', {key}="{value}"' for key, value in labels.items())
    return f'mesos_allocator_{name}{{instance=~"$instance"{more}}}'


def rate(name: str, by: str = "") -> str:
    """The rate of a counter per second, summed by a label."""
    inner = f"rate({metric(name)}[$__rate_interval])"
    return f"sum by ({by}) ({inner})" if by else inner


def below(part: float, name: str, *by: str) -> str:
    """A quantile (0 to 1) of a histogram of times."""
    return f"histogram_quantile({part}, {rate(f'{name}_bucket', ', '.join(('le', *by)))})"


def cycle_time(part: float) -> str:
    """A quantile (0 to 1) of the duration of cycles."""
    return below(part, "cycle_duration_seconds")
