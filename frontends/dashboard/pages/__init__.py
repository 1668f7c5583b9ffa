"""Pages of the dashboard, by subject. A page calls use cases and shows what they return; it has no rule of its own."""
