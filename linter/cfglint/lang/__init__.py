"""The rule language: text, tree, types, and the Python functions that it compiles to."""
