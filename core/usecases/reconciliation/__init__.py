"""What a bank booked, held against what we did."""
