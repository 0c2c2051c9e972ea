"""The lab's clock: the broker's time stands still, is advanced, or passes at a rate."""
