"""Implements the commands, one file a command or group of commands. No other package imports them."""
