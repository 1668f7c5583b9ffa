"""Recognition of a copied database, its comparison with providers, and the end of its quarantine."""
