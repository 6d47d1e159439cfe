"""Versions of frameworks: releases are their numbers; what is developed lies just before its release."""

from __future__ import annotations

_INF = float("inf")
NEWEST = (_INF,)


def towards(release: tuple[int, ...]) -> tuple[float, ...]:
    """Return what is under development towards a release: 0.10.dev0 comes after all of 0.9.

    A release ends with no zero.
    """
    return (*release[:-1], release[-1] - 1, _INF) if release else ()


def spelled(version: tuple[float, ...]) -> str:
    """Return ``0.9.1``, or ``0.10.dev``; nothing of the newest."""
    numbers = version if version[-1:] != (_INF,) else _release(version)
    end = "" if numbers is version else ".dev"
    return ".".join(f"{number:g}" for number in numbers) + end if numbers else ""


def holds(version: tuple[float, ...], operator: str, limit: tuple[int, ...]) -> bool:
    """Whether a version is within a limit; what is developed towards the limit itself is on neither side.

    It has some of what the release changes.
    """
    if version[-1:] == (_INF,) and _release(version) == limit:
        return operator == "!="
    return {
        "<": version < limit,
        "<=": version <= limit,
        ">": version > limit,
        ">=": version >= limit,
        "==": version == limit,
        "!=": version != limit,
    }[operator]


def _release(version: tuple[float, ...]) -> tuple[float, ...]:
    """Return the release that a version is developed towards; nothing of the newest."""
    numbers = version[:-1]
    return (*numbers[:-1], numbers[-1] + 1) if numbers else ()
