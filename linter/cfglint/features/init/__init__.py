"""`cfglint init`: settings, the pre-commit entry and the CI workflow."""
