"""What happens: one verb-named coroutine per thing a merchant, a payer or an operator can do. They speak to ports."""
