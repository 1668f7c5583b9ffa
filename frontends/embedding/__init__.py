"""The service embedded in another program. `cambist`, the package's root, exports its public names."""
