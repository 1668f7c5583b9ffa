"""What the hosted pages show."""
