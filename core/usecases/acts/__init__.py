"""What operators do: the audit log, and the gate before acts that two make together."""
