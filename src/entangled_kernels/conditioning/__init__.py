"""How targets relate once their predictions are made: conditioning some of them on others."""
