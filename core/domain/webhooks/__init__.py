"""Events, their signatures, and when a delivery is tried again."""
