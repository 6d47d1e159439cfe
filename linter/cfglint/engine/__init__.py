"""Rules against documents and targets: what holds, what does not, what cannot be determined yet."""
