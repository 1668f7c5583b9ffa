"""The interface described: rows of operations, values, meanings and examples; `/docs` is drawn from them."""
