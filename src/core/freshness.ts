/**
 * How old a router's knowledge of the subscriptions may be when it matches an event, ms. Asking the broker for each batch
 * would be certain too, but costs a round trip of every event and a third of the broker's requests at a slow pace.
 */
export const matchAgeMs = 50

/**
 * So long after its acknowledgement whoever wrote a subscription waits before saying that it is done, and a backfill before it
 * hands over to live traffic: longer than `matchAgeMs`, so an event produced after that is matched with it, by every router.
 */
export const settledMs = 60
