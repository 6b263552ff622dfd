import { type Cell, measureCell, usual } from './cell.ts'
import { load } from './machine.ts'
import { type Figures, Rows, type Target } from './result.ts'
import type { Scenario } from './scenario.ts'

/** How each input grows; the first value is what the others are compared with. */
const dimensions: Readonly<Record<string, readonly Partial<Cell>[]>> = {
  subscriptions: [10, 100, 1_000, 10_000, 100_000].map((subscriptions) => ({ subscriptions })),
  fanout: [1, 10, 100, 1_000].map((fanOut) => ({ fanOut })),
  lanes: [4, 12, 48, 96].map((lanes) => ({ lanes })),
  backlog: [0, 100_000, 1_000_000].map((backlog) => ({ backlog })),
  failing: [0, 10, 50].map((failing) => ({ failing })),
  payload: [100, 1_024, 16_384, 250_000].map((bytes) => ({
    bytes,
    deliveries: bytes > 100_000 ? 1_500 : bytes > 10_000 ? 10_000 : usual.deliveries,
  })),
}

/** What a delivery costs as one input grows and the others stay: a price that rises faster than its input would show. */
export const scale: Scenario = {
  name: 'scale',
  about: `deliveries per second and CPU per delivery as one input grows; else ${usual.subscriptions} subscriptions, fan-out 1, ${usual.lanes} lanes, no backlog, ${usual.bytes} B, 256 open`,
  async run(stage, settings) {
    const rows = new Rows()
    const targets: Target[] = []
    const unknown = settings.dimensions?.find((name) => !(name in dimensions))
    if (unknown !== undefined)
      throw new Error(`--dimension ${unknown}: there are ${Object.keys(dimensions).join(', ')}`)
    for (const [name, cells] of Object.entries(dimensions)) {
      if (settings.dimensions !== undefined && !settings.dimensions.includes(name)) continue
      let first: Figures | null = null
      for (const cell of cells) {
        const value = Object.values(cell)[0] as number
        const row = `${name} ${value}`
        settings.note(`scale, ${row}, load ${load().toFixed(1)}`)
        const deliveries = settings.deliveries ?? cell.deliveries ?? usual.deliveries
        const figures = await measureCell(stage, `scale-${name}${value}`, { ...usual, ...cell, deliveries })
        first ??= figures
        rows.add(row, { 'CPU to the first': ratio(figures, first), ...figures })
        const grown = Math.max(1, value) / Math.max(1, Object.values(cells[0] as object)[0] as number)
        targets.push({ row, figure: 'CPU to the first', atMost: Math.max(1.5, grown) })
      }
    }
    return { rows: rows.all(), targets }
  },
}

/** The same of one input: a backlog, which must not make what is delivered from it dearer. */
export const backlog: Scenario = {
  name: 'backlog',
  about: '20,000 deliveries measured while none, and while 1,000,000 more, wait behind them in Kafka',
  async run(stage, settings) {
    const rows = new Rows()
    const waiting = settings.deliveries ?? 1_000_000
    settings.note(`backlog, none, load ${load().toFixed(1)}`)
    // Both are routed beforehand, or the router would take its part of the machine in one of them only.
    const none = await measureCell(stage, 'backlog0', { ...usual, backlog: 1 })
    rows.add('none waiting', none)
    settings.note(`backlog, ${waiting}, load ${load().toFixed(1)}`)
    const much = await measureCell(stage, 'backlog1', { ...usual, backlog: waiting })
    const row = `${waiting} waiting`
    rows.add(row, {
      ratio: (much['per s'] ?? Number.NaN) / (none['per s'] ?? Number.NaN),
      'CPU to the first': ratio(much, none),
      'RSS above the first MB': (much['peak RSS MB'] ?? Number.NaN) - (none['peak RSS MB'] ?? Number.NaN),
      ...much,
    })
    return {
      rows: rows.all(),
      targets: [
        { row, figure: 'ratio', atLeast: 0.8 },
        { row, figure: 'peak RSS MB', atMost: 400 },
      ],
    }
  },
}

function ratio(figures: Figures, first: Figures): number {
  return (figures['CPU s/1000'] ?? Number.NaN) / (first['CPU s/1000'] ?? Number.NaN)
}
