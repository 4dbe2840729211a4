"""The overlay: a carrier of relays behind onion services, with trees and boxes at hosts."""
