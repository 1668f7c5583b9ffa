"""The interface described: values, meanings and examples beside the rows of operations; `/docs` is drawn from it."""
