"""What an operator did, and what waits for a second one."""
