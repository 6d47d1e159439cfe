"""`cfglint fix`: apply proven repairs."""
