"""The books: one way to post, the chains of entries, checks and balances."""
