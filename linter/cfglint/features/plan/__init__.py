"""`cfglint plan`: ways to reach an effective batch on some GPUs."""
