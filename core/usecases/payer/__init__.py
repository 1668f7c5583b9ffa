"""The pages of a payer: payment window, binding, KYC; each read by an id that is the only key to it."""
