"""What is made up: small worlds with a rule, that a lesson needs or that stand in where there is no network."""
