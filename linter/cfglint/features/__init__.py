"""What cfglint does: a folder for each command, with what it computes, how that is shown, and its flags."""
