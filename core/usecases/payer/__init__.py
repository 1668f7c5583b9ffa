"""Pages for payers: payment window, binding and KYC. The id in the address is the only permission to read a page."""
