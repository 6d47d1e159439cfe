"""``python -m cfglint``."""

import os
import sys

# Python looks into the working folder first for `-m`. What lies there may be a stranger's, and none of it is
# ours, unless this very package was started from there (SECURITY.md).
_package = os.path.dirname(os.path.abspath(__file__))
if sys.path[:1] == [os.getcwd()] and os.path.dirname(_package) != sys.path[0]:
    del sys.path[0]

from cfglint.cli import main  # noqa: E402 (not before the path is safe)

if __name__ == "__main__":
    raise SystemExit(main())
