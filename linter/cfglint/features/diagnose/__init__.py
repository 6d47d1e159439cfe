"""`cfglint diagnose`: who held the memory when a job died, read from its log."""
