"""Long runs on testnets of real processes: chaos, kills, memory."""
