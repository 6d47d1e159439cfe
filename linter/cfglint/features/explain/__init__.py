"""`cfglint explain`: a rule, or its arithmetic on a config."""
