"""Launch scripts: what a shell script would run, as the same trees that YAML gives."""
