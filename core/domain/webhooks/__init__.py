"""Events, their signatures, and the schedule of their deliveries."""
