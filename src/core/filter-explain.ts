import type { EventFacts } from './event-facts.ts'
import { lookUp } from './event-path.ts'
import { type Condition, type Filter, type FilterNode, holds } from './filter.ts'

/** Why an event does not pass, one line per condition that would have to change; empty when it passes. */
export function explainFilter(filter: Filter, facts: EventFacts): string[] {
  const lines: string[] = []
  explain(filter.node, facts, true, lines)
  return lines.slice(0, 20)
}

function explain(node: FilterNode, facts: EventFacts, wanted: boolean, lines: string[]): void {
  if (holds(node, facts, { left: steps }) === wanted) return
  switch (node.t) {
    case 'and':
    case 'or':
      for (const part of node.of) explain(part, facts, wanted, lines)
      return
    case 'not':
      explain(node.of, facts, !wanted, lines)
      return
    case 'test':
      lines.push(sentence(node, facts, wanted))
      return
    default:
      node satisfies never
  }
}

function sentence({ path, operator, operand }: Condition, facts: EventFacts, wanted: boolean): string {
  const asked = `${path.text} ${wanted ? '' : 'not '}${operator} ${short(operand)}`
  if (path.root === 'body' && facts.body === undefined) return `${asked}: the body is not JSON`
  if (path.root !== 'event' && path.keys.includes(null))
    return `${asked}: ${wanted ? 'no item passes' : 'an item passes'}`
  const found = lookUp(path, facts)
  return `${asked}: ${found === undefined ? 'there is no such value' : `it is ${short(found)}`}`
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

const steps = 100_000
