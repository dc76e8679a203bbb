"""What measures or attacks the product and is no part of it: speeds, attacks, their table, a class to try things on."""
