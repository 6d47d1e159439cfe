"""``python -m cfglint``."""

from cfglint.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
