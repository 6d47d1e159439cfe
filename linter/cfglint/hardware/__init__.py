"""What is known of GPUs: the catalogue, names, targets, hardware sheets, and NVML (only when asked)."""

from __future__ import annotations

from cfglint.hardware.catalogue import Gpu, Match, find, gpus
from cfglint.hardware.target import Target, all_targets, parse_target

__all__ = ["Gpu", "Match", "Target", "all_targets", "find", "gpus", "parse_target"]
