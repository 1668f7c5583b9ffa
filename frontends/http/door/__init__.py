"""What every request passes before a subject has it: bounds, intake, edge, keys, errors; and how the server leaves."""
