import { type Compiled, compileFilter, type Filter } from './filter.ts'
import type { Problem } from './result.ts'
import type { Subscription } from './subscription.ts'
import { type CompiledTransformation, compileTransformation, type Transformation } from './transform.ts'

/** What is wrong with the filter and the transformation, beyond what the schema tells. `data` may be anything. */
export function contentProblems(data: Readonly<Record<string, unknown>>): readonly Problem[] {
  const problems: Problem[] = []
  if (isObject(data.filter)) problems.push(...problemsOf(compileFilter(data.filter)))
  if (isObject(data.transform) && 'template' in data.transform)
    problems.push(...problemsOf(compileTransformation(data.transform as unknown as Transformation)))
  return problems
}

/** Compiled once per version of the subscription: a changed one is another object. Null: it has none. */
export function filterOf(subscription: Subscription): Filter | null {
  return compiledOf(filters, subscription, subscription.filter, compileFilter)
}

export function transformationOf(subscription: Subscription): CompiledTransformation | null {
  return compiledOf(transformations, subscription, subscription.transform, compileTransformation)
}

function compiledOf<A, C>(
  known: WeakMap<Subscription, C>,
  subscription: Subscription,
  asked: A | undefined,
  compile: (asked: A) => Compiled<C>,
): C | null {
  if (asked === undefined) return null
  let compiled = known.get(subscription)
  if (compiled === undefined) {
    const result = compile(asked)
    // Decoding refuses such records, so nothing that holds one gets here.
    if (!result.ok) throw new TypeError(`subscription ${subscription.id}: ${result.problems[0]?.message}`)
    compiled = result.value
    known.set(subscription, compiled)
  }
  return compiled
}

function problemsOf(compiled: Compiled<unknown>): readonly Problem[] {
  return compiled.ok ? [] : compiled.problems
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const filters = new WeakMap<Subscription, Filter>()
const transformations = new WeakMap<Subscription, CompiledTransformation>()
