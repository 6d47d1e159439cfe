"""`cfglint gpus`, `rules`, `frameworks`, `schema`, `hardware`: what cfglint knows."""
