"""Objects of the service and their rules. Pure: no port, no clock, no await."""
