"""Programs and notebooks in Python: what they train with, as the same trees that YAML gives."""
