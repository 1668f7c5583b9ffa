"""What things are and which rules hold for them. Pure: no port, no clock, no await."""
