"""`cfglint test`: rules against their own examples and against each other."""
