"""Both systems of VB §4 beside each other, as VB §5 measures them: real daemons, modelled machines."""
