"""From a run to numbers and pictures."""
