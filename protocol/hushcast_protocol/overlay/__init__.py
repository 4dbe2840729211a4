"""The decisions of the overlay: trees, leases, routes, parcels."""
