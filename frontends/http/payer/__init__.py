"""The hosted pages: payment window, binding, KYC."""
