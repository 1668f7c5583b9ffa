"""The books: one way to post, the seals over entries, checks and balances."""
