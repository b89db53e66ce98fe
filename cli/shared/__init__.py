"""Contains what all commands use: errors, output, files, times, the caller's session."""
