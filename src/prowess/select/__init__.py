"""Which skills are worth showing for a query, and how much of each fits."""
