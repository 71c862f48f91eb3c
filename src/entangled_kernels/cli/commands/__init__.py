"""One module to a command; none imports another."""
