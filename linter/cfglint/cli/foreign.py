"""Says what to do where another package named cfglint has put its files among ours.

The index has one, and pip lets both write the same folder: modules of ours are then replaced, or go when the
other is removed. Nothing of ours is imported here, since it may be what was replaced.
"""

from __future__ import annotations

import os


def mixed() -> str | None:
    """Return the error for an installation that is mixed with another package's; None where it is not."""
    from importlib import metadata  # slow to import: asked when something went wrong, and by --version

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        stranger = metadata.distribution("cfglint")
    except metadata.PackageNotFoundError:
        return None
    places = (str(stranger.locate_file(file)) for file in stranger.files or ())
    if all(os.path.dirname(os.path.abspath(place)) != package for place in places):
        return None
    cure = "`pip uninstall cfglint`, then `pip install --force-reinstall cfglint-gpu`"
    what = f"another package named cfglint ({stranger.version}) has its files among ours in {package}"
    return f"error: {what}; remove it and repair ours: {cure}"
