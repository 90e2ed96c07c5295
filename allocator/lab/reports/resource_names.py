"""Resources as tables and axes name them."""

NAMES = {"cpus": "CPU", "mem": "memory", "gpus": "GPU"}
