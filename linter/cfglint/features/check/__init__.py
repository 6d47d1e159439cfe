"""`cfglint check`: judge files and report findings."""
