import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shippedProgram } from '../program.js'
import { root } from '../repository.js'
import type { Bar } from './lists.js'
import { percentile } from './streams.js'

const bin = shippedProgram()

/** Medians in milliseconds of wall clock, from the start of the process. */
export interface Starts {
  /** `node -e 0`: what no program of Node can do without. */
  readonly nodeMs: number
  readonly commands: Readonly<Record<string, number>>
  /** To the first good answer of `/api/health`, with all plugins. */
  readonly healthMs: number
  /** MiB of resident memory, some seconds after that: V8 has not collected yet what the start leaves behind. */
  readonly startedMib: number
  readonly loaded: Readonly<Record<string, LoadedFiles>>
}

/** Names of the files that a program loads, by whose they are: `svc`, or a package. Each is below the folder of its owner. */
export type LoadedFiles = Readonly<Record<string, readonly string[]>>

const commandsAt = (url: string): Readonly<Record<string, readonly string[]>> => ({
  'svc --version': ['--version'],
  'svc --help': ['--help'],
  'svc status': ['status', '--url', url]
})

/** Commands run beside a gateway that has nothing to do: it is what they ask. */
export async function measureStarts (home: string, rounds: number): Promise<Starts> {
  const asked = await serve(join(home, 'asked'))
  try {
    await rested()
    return await measureRounds(join(home, 'started'), rounds, commandsAt(asked.url))
  } finally {
    await asked.stop()
  }
}

/** All of them in turn, round for round: what else the machine does meets each alike. */
async function measureRounds (
  home: string, rounds: number, commands: Readonly<Record<string, readonly string[]>>
): Promise<Starts> {
  const node: number[] = []
  const health: number[] = []
  const own = new Map<string, number[]>(Object.keys(commands).map(name => [name, []]))
  const idle: number[] = []
  for (let round = 0; round < rounds; round++) {
    node.push(await ended(['-e', '0']))
    for (const [name, args] of Object.entries(commands)) own.get(name)!.push(await ended([bin, ...args]))
    const served = await start(home)
    health.push(served.ms)
    idle.push(served.mib)
  }
  const loaded: Record<string, LoadedFiles> = {}
  for (const [name, args] of Object.entries(commands)) loaded[name] = await filesOf(env => ended([bin, ...args], env))
  loaded['svc serve'] = await filesOf(env => start(home, env))
  return {
    nodeMs: percentile(node, 50),
    commands: Object.fromEntries([...own].map(([name, all]) => [name, percentile(all, 50)])),
    healthMs: percentile(health, 50),
    startedMib: percentile(idle, 50),
    loaded
  }
}

export function startBars ({ nodeMs, commands, healthMs }: Starts): readonly Bar[] {
  const ratio = (name: string): number => commands[name]! / nodeMs
  return [
    { name: 'svc --version / node -e 0', value: ratio('svc --version'), limit: '<= 1.5', ok: ratio('svc --version') <= 1.5 },
    { name: 'svc --help / node -e 0', value: ratio('svc --help'), limit: '<= 2.5', ok: ratio('svc --help') <= 2.5 },
    { name: 'svc status / node -e 0', value: ratio('svc status'), limit: '<= 2.5', ok: ratio('svc status') <= 2.5 },
    { name: 'first /api/health / node -e 0', value: healthMs / nodeMs, limit: '<= 5', ok: healthMs / nodeMs <= 5 }
  ]
}

export function startLines ({ nodeMs, startedMib, loaded }: Starts): readonly string[] {
  const counted = Object.entries(loaded).map(([name, byOwner]) =>
    `${name} loads ${Object.entries(byOwner).map(([owner, files]) => `${owner} ${files.length}`).join(', ')}`)
  return [`node -e 0: ${nodeMs.toFixed(0)} ms`, `resident after the start: ${startedMib.toFixed(0)} MiB`, ...counted]
}

async function ended (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number> {
  const begun = performance.now()
  const [code] = await once(spawn(process.execPath, args, { stdio: 'ignore', env: { ...process.env, ...env } }), 'exit')
  const ms = performance.now() - begun
  if (code !== 0) throw new Error(`\`${args.slice(1).join(' ')}\` ended with exit code ${code}`)
  return ms
}

/** Until it rests: it ends then. */
async function start (home: string, env: Readonly<Record<string, string>> = {}): Promise<{ ms: number, mib: number }> {
  const { pid, ms, stop } = await serve(home, env)
  try {
    await rested()
    const kib = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    return { ms, mib: kib / 1024 }
  } finally {
    await stop()
  }
}

function rested (): Promise<void> {
  return new Promise(resolve => { setTimeout(resolve, 3_000) })
}

interface Served {
  readonly url: string
  readonly pid: number
  /** To the first good answer of `/api/health`. */
  readonly ms: number
  stop (): Promise<void>
}

async function serve (home: string, env: Readonly<Record<string, string>> = {}): Promise<Served> {
  const begun = performance.now()
  const child = spawn(process.execPath, [bin, 'serve', '--home', home, '--port', '0', '--ready-json'], {
    stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, ...env }
  })
  const gone = once(child, 'exit')
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await gone
  }
  try {
    const [line] = await Promise.race([once(child.stdout, 'data'), gone.then(() => { throw new Error('the gateway ended at its start') })]) as [Buffer]
    const { url } = JSON.parse(line.toString()) as { url: string }
    const answer = await fetch(`${url}/api/health`)
    if (answer.status !== 200) throw new Error(`/api/health was answered ${answer.status}`)
    return { url, pid: child.pid!, ms: performance.now() - begun, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** What V8 has compiled by the end, from its own account. */
async function filesOf (run: (env: Readonly<Record<string, string>>) => Promise<unknown>): Promise<LoadedFiles> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-loaded-'))
  try {
    await run({ NODE_V8_COVERAGE: folder })
    const urls = new Set(readdirSync(folder).flatMap(file => (JSON.parse(readFileSync(join(folder, file), 'utf8')) as
      { result: ReadonlyArray<{ url: string }> }).result.map(({ url }) => url)))
    const files = new Map<string, string[]>()
    for (const url of [...urls].sort()) {
      if (!url.startsWith('file:')) continue
      const path = fileURLToPath(url)
      const [, owner = 'svc', inside = relative(root, path)] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(.*)/.exec(path) ?? []
      files.set(owner, [...files.get(owner) ?? [], inside])
    }
    return Object.fromEntries([...files].sort(([, a], [, b]) => b.length - a.length))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
