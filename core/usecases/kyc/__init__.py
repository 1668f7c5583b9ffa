"""Clients and their KYC: links, checks, results, uploads."""
