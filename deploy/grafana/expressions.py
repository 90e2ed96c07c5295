"""PromQL that dashboards share; the sidecar is chosen by ``$instance``."""

ONE = '{instance=~"$instance"}'
"""Every series of the sidecar that was chosen."""


def metric(name: str, **labels: str) -> str:
    """One of our metrics, of the chosen sidecar."""
    more = "".join(f', {key}="{value}"' for key, value in labels.items())
    return f'mesos_allocator_{name}{{instance=~"$instance"{more}}}'


def rate(name: str, by: str = "") -> str:
    """How fast a counter grows, a second; added up by a label."""
    inner = f"rate({metric(name)}[$__rate_interval])"
    return f"sum by ({by}) ({inner})" if by else inner


def below(part: float, name: str, *by: str) -> str:
    """The time that this part of what a histogram counts stays below."""
    return f"histogram_quantile({part}, {rate(f'{name}_bucket', ', '.join(('le', *by)))})"


def cycle_time(part: float) -> str:
    """The time that this part of all cycles stays below."""
    return below(part, "cycle_duration_seconds")
