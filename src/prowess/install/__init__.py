"""Installing: plan, fetch, stage, swap, lock, verify. All or nothing, whenever it ends."""
