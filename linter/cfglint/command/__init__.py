"""What every command is made of: flags, settings, targets, files, exit status."""
