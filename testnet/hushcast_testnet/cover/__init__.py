"""The lab of cover: the machines of daemons and relays in rounds, and those who watch and collude."""
