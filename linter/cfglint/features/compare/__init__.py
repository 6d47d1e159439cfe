"""`cfglint compare`: what differs between two configs, and what that costs."""
