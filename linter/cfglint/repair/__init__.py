"""Derives fixes from broken rules: candidate values, the text edits that write them, and the proof."""
