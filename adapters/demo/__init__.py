"""`expunge demo`: one story told for real, with every claim checked by another road."""
