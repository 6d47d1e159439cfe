"""Reads what jobs print when memory runs out: lines of a log, to incidents. No disk, no configs, no rules."""
