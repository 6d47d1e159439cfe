"""`cfglint fit`: the memory that a config takes on each of several targets."""
