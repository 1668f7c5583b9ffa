"""Files of payments and refunds that people order at the dashboard."""
