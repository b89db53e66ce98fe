"""Programs inside an instance that Systems Manager manages. They use only the standard library."""
