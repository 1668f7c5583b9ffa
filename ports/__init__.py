"""The sockets: small protocols with a vocabulary of their own, which the core speaks to and adapters fill."""
