"""cambist: a merchant's payment, subscription and exchange service, and a library to embed it."""
