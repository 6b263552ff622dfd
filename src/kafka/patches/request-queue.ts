/** The part of kafkajs's RequestQueue class that is used here. */
export interface RequestQueueClass {
  prototype: RequestQueue
}

interface RequestQueue {
  pending: unknown[]
  scheduleCheckPendingRequests(): void
}

/**
 * `network/requestQueue` re-arms a timer after every response even when nothing is pending, with a negative delay: a
 * 1 ms timer loop per connection (30–37 ms CPU per second idle, and a TimeoutNegativeWarning each on Node 24).
 * Nothing pending means nothing to schedule: `push` schedules by itself.
 */
export function calmRequestQueue(queue: RequestQueueClass): void {
  const stock = queue.prototype.scheduleCheckPendingRequests
  queue.prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) stock.call(this)
  }
}
