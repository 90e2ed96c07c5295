"""Package metadata that depends on the version, which `allocator/__init__.py` declares."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent

declared = (HERE.parent / "allocator" / "__init__.py").read_text(encoding="utf-8")
(version,) = re.findall(r'(?m)^__version__ = "(.*)"$', declared)

setup(
    script_name="setup.py",  # so that setuptools leaves this file out of the package
    version=version,
    install_requires=[
        "joblib>=1.6,<2",
        f"mesos-allocator[plots]=={version}",
        "pyarrow>=26.0.1,<27",
        "scipy>=1.17.1,<1.18",
    ],
    packages=["laboratory", *(f"laboratory.{name}" for name in find_packages(str(HERE)))],
)
