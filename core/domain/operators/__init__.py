"""The audit log of operators' actions, and actions that wait for a second operator."""
