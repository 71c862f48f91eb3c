"""Pages that commands write."""
