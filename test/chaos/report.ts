import type { RoundResult } from './round.ts'

export function roundLine(result: RoundResult): string {
  const { duplicates: d } = result
  const repeats = `${d.open} open, ${d.uncommitted} uncommitted, ${d.zombie} of a stopped process`
  return [
    `${result.fault} ${result.seed}: ${result.problems.length === 0 ? 'holds' : `FAILS (${result.problems.length})`}`,
    `${result.workers} workers, ${result.changes} changes`,
    `${result.records} events, ${result.deliveries} deliveries, ${result.posts} POSTs`,
    `repeats ${repeats}; ${d.unanswered} answered too late, ${result.late} read too late, ${result.unseen} not got through, receiver stood still ${Math.round(result.stallMs)} ms`,
    `${result.moves} retries, ${result.parked} parked, ${result.dead} dead`,
    `${result.commits} commits, ${result.evictions} evictions`,
    `final ${(result.settleMs / 1000).toFixed(1)} s after the last event, ${result.seconds.toFixed(0)} s in all`,
  ].join('; ')
}

export function totalLines(results: readonly RoundResult[]): string[] {
  return [...Map.groupBy(results, ({ fault }) => fault)].map(([fault, rounds]) => {
    const sum = (of: (round: RoundResult) => number) => rounds.reduce((total, round) => total + of(round), 0)
    const good = rounds.filter(({ problems }) => problems.length === 0).length
    const repeats = sum(({ duplicates: d }) => d.open + d.uncommitted + d.zombie)
    return [
      `${fault}: ${good} of ${rounds.length} rounds hold`,
      `${sum((r) => r.changes)} changes`,
      `${sum((r) => r.records)} events, ${sum((r) => r.deliveries)} deliveries, ${sum((r) => r.posts)} POSTs`,
      `${repeats} repeats, ${sum((r) => r.duplicates.unanswered)} answered too late`,
      `slowest end ${(Math.max(...rounds.map((r) => r.settleMs)) / 1000).toFixed(1)} s`,
    ].join('; ')
  })
}
