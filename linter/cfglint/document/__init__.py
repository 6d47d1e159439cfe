"""Config files as trees of spans, and their values as the target framework's loader would see them."""
