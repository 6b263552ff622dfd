import { posix } from 'node:path'
import { parseAst } from 'vite'
import { read } from './files.ts'

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}

export interface Import {
  /** A path from the root, or a package name with what follows it. */
  readonly target: string
  /** What is named, empty for `import x` and `import *`. */
  readonly names: readonly string[]
}

/** One file of TypeScript, as far as the rules ask. */
export interface Source {
  readonly path: string
  readonly imports: readonly Import[]
  /** Clocks, timers, chance, `process`, `console`, by the name a person would search for. */
  readonly ambient: ReadonlySet<string>
  readonly isAsync: boolean
  /** Nothing but imports and re-exports. */
  readonly isBarrel: boolean
}

const known = new Map<string, Source>()

export function source(path: string): Source {
  let found = known.get(path)
  if (found === undefined) {
    found = inspect(path, read(path))
    known.set(path, found)
  }
  return found
}

export function inspect(path: string, text: string): Source {
  const program = parseAst(text, { lang: path.endsWith('.ts') ? 'ts' : 'js' }, path) as unknown as { body: Node[] }
  const imports: Import[] = []
  const ambient = new Set<string>()
  let isAsync = false
  walk(program.body, (node) => {
    const target = sourceOf(node)
    if (target !== null) {
      imports.push({ target: resolve(path, target), names: importedNames(node) })
    }
    if (node.async === true || node.type === 'AwaitExpression') isAsync = true
    for (const name of ambientNames(node)) ambient.add(name)
  })
  const isBarrel =
    program.body.length > 0 &&
    program.body.some((node) => node.type !== 'ImportDeclaration') &&
    program.body.every((node) => node.type === 'ImportDeclaration' || isReExport(node))
  return { path, imports, ambient, isAsync, isBarrel }
}

function sourceOf(node: Node): string | null {
  const from = /^(Import|ExportNamed|ExportAll)Declaration$|^(ImportExpression|TSImportType)$/.test(node.type)
    ? (node.source as Node | null)
    : null
  return typeof from?.value === 'string' ? from.value : null
}

function importedNames(node: Node): string[] {
  return ((node.specifiers ?? []) as Node[]).flatMap((s) => {
    const name = (s.imported as Node | undefined)?.name
    return typeof name === 'string' ? [name] : []
  })
}

function isReExport(node: Node): boolean {
  if (node.type === 'ExportAllDeclaration') return true
  return node.type === 'ExportNamedDeclaration' && node.declaration === null
}

const globals = new Set([
  'process',
  'console',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'performance',
  'globalThis',
])
const members = new Set(['Date.now', 'Math.random', 'AbortSignal.timeout'])

function ambientNames(node: Node): string[] {
  if (node.type === 'MemberExpression') {
    const text = `${(node.object as Node).name}.${(node.property as Node).name}`
    return members.has(text) ? [text] : []
  }
  if (node.type === 'NewExpression' && (node.callee as Node).name === 'Date')
    return (node.arguments as Node[]).length === 0 ? ['new Date()'] : []
  if (node.type === 'Identifier' && globals.has(node.name as string)) return [node.name as string]
  return []
}

/** Calls `visit` for each node; names that are no references (members, keys, types) are left out. */
function walk(value: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit)
  if (typeof value !== 'object' || value === null || typeof (value as Node).type !== 'string') return
  const node = value as Node
  visit(node)
  for (const [key, child] of Object.entries(node)) {
    const isName = key === 'property' || key === 'key'
    if (isName && node.computed !== true && (child as Node | null)?.type === 'Identifier') continue
    if (typeof child === 'object') walk(child, visit)
  }
}

function resolve(path: string, target: string): string {
  return target.startsWith('.') ? posix.normalize(posix.join(posix.dirname(path), target)) : target
}
