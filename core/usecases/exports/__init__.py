"""Files of payments and refunds: their rows, and the background job that writes them."""
