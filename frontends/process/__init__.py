"""What a running process does for itself: registration, database marks, file limits and garbage collection."""
