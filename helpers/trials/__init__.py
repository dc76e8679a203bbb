"""What measures or attacks the product and is no part of it: speeds, attacks and their table, a class to try things on."""
