"""Use cases: one coroutine, named by a verb, for each action of a merchant, a payer or an operator. They call ports."""
