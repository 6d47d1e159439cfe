"""`cfglint verify`: measured memory against the estimate."""
