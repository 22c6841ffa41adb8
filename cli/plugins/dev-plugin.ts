import { createHash } from 'node:crypto'
import { lstat, readdir, readFile, readlink, rm, stat, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import type { Paths } from '../../kernel/contract/index.js'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { CliFailure } from '../failure.js'
import { addressOf } from '../offline/home/running-gateway.js'
import { packageOf, reasonOf, waitingText, type PluginReport } from '../record/plugin-report.js'
import { asWritten } from '../client/route-words.js'
import { GatewayChild } from '../serve/gateway-child.js'
import { oneLine } from '../terminal/text-width.js'
import { linkGateway } from './gateway-link.js'
import { Transpiler } from './transpiler.js'
import { runNpm, startNpm } from '../npm.js'
import { OfflineHome } from './offline-home.js'
import { readPackageManifest } from './package-manifest.js'
import { postReload } from './reload.js'

const READY_MS = 120_000
/** Between two looks at the folder; it has settled when two see the same. */
const LOOK_MS = 100
const AGAIN_MS = 1_000
const DROP_MS = 30_000

const packageSchema = z.looseObject({ scripts: z.record(z.string(), z.string()).default({}) })
const logLineSchema = z.looseObject({
  level: z.string(), message: z.string(), fields: z.record(z.string(), z.unknown()).default({})
})

/**
 * Builds a plugin, loads it from its folder into the gateway of this home, and again whenever what it ships has changed,
 * until the command is interrupted. Then it is taken out again.
 */
export async function devPlugin (cli: Cli, text: string, paths: Paths): Promise<void> {
  const folder = resolve(cli.process.cwd(), text)
  const manifest = await readPackageManifest(folder)
  if (manifest === null) throw new CliFailure(`${folder} has no package.json, so it is not a package`, { hints: ['`svc plugin new <folder>` writes one.'] })
  if (manifest.problem !== null) throw new CliFailure(`package '${manifest.name}' ${manifest.problem}`)
  const scripts = await firstBuild(cli, folder)
  const child = await gatewayFor(cli, paths)
  try {
    const url = await addressOf(paths)
    if (url === null) throw new CliFailure('the gateway of this home is starting or cannot be reached; try again')
    cli.out.note(`The gateway listens at ${url}.`)
    await whileLinked(cli, paths, { folder, name: manifest.name }, cli.clientAt(url), async () => {
      const transpiler = await Transpiler.of(folder, scripts.build)
      const watching = scripts.dev === undefined ? null : await runScript(cli, folder, 'dev')
      try {
        await follow(cli, folder, manifest.name, cli.clientAt(url), transpiler)
      } finally {
        await watching?.()
      }
    })
  } finally {
    await child?.stop()
  }
}

interface Linked {
  readonly folder: string
  readonly name: string
}

/** One build to begin with: a plugin whose code is not there yet cannot be loaded. */
async function firstBuild (cli: Cli, folder: string): Promise<Readonly<Record<string, string>>> {
  const place = { folder, env: cli.env, signal: cli.signal }
  if (await stat(join(folder, 'node_modules', '.package-lock.json')).catch(() => null) === null) {
    cli.out.note('Installing its build dependencies ...')
    await runNpm(place, 'install', ['--no-audit', '--no-fund', '--loglevel=error'])
  }
  await linkGateway(folder)
  const { scripts } = packageSchema.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')))
  if (scripts.build !== undefined) {
    cli.out.note('Building ...')
    await runNpm(place, 'run', ['--silent', 'build'])
  }
  return scripts
}

/** Null where one runs already. */
async function gatewayFor (cli: Cli, paths: Paths): Promise<GatewayChild | null> {
  if (await addressOf(paths) !== null) return null
  cli.out.note('No gateway runs on this home; starting one ...')
  const child = new GatewayChild(['--port', '0', ...paths.home === null ? [] : ['--home', paths.home]], cli.process.cwd())
  try {
    await child.ready(READY_MS, cli.signal)
    return child
  } catch (error) {
    const { log } = child
    await child.stop().catch(() => {})
    cli.signal.throwIfAborted()
    throw new CliFailure((error as Error).message, { cause: error, hints: log.map(line => `  ${line}`) })
  }
}

async function whileLinked (
  cli: Cli, paths: Paths, { folder, name }: Linked, client: ApiClient, work: () => Promise<void>
): Promise<void> {
  const home = new OfflineHome(cli, paths)
  const link = join(paths.plugins, 'node_modules', name)
  await home.exclusively(async () => {
    const there = await lstat(link).catch(() => null)
    if (there !== null && (!there.isSymbolicLink() || await readlink(link) !== folder)) {
      throw new CliFailure(`${name} is installed already`, { hints: [`Remove it first: svc plugin remove ${name}`] })
    }
    await rm(link, { force: true })
    await symlink(folder, link, 'dir')
    await home.allow(name)
  })
  try {
    await work()
  } finally {
    await home.exclusively(async () => {
      await home.disallow(name)
      // its code goes only when nothing runs it any more; a gateway that has ended runs nothing
      await dropQuietly(client)
      await rm(link, { force: true })
    })
    cli.out.note(`${name} is unloaded from the gateway.`)
  }
}

/** Also after an interrupt, which ends every call of the client. */
async function dropQuietly ({ base }: ApiClient): Promise<void> {
  await fetch(`${base}/api/plugins/reload`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}', signal: AbortSignal.timeout(DROP_MS)
  }).catch(() => {})
}

/** Starts a script that stays and shows what it writes; the function it gives ends it, with all that it started. */
async function runScript (cli: Cli, folder: string, script: string): Promise<() => Promise<void>> {
  const child = await startNpm({ folder, env: cli.env, signal: cli.signal }, ['run', '--silent', script], true)
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => { if (line.trim() !== '') cli.out.line(`build  ${asWritten(oneLine(line))}`) })
  }
  const exited = new Promise<void>(done => { child.once('close', () => done()) })
  return async () => {
    try {
      process.kill(-child.pid!, 'SIGTERM')
    } catch {
      // it has ended by itself
    }
    await exited
  }
}

/** Loads it now and after each change, and shows its log meanwhile. Ends with the signal of the command. */
async function follow (
  cli: Cli, folder: string, name: string, client: ApiClient, transpiler: Transpiler | null
): Promise<never> {
  let [seen, loaded]: [string | null, string | null] = [null, null]
  const logs = new Set<string>()
  for (;;) {
    // an `npm install` meanwhile takes the link away; while one is at work, the next look sets it
    await linkGateway(folder).catch(() => {})
    await transpiler?.update()
    const stamp = await settledStamp(folder, cli.signal)
    // a build that comes to the same result is no change
    const content: string | null = stamp === seen ? loaded : await contentOf(folder)
    seen = stamp
    if (content !== loaded) {
      const isFirst = loaded === null
      loaded = content
      const from = performance.now()
      const reports = (await postReload(client, [name])).filter(report => packageOf(report) === name)
      for (const report of reports) {
        cli.out.line(`${isFirst ? 'load' : 'reload'}  ${oneLine(outcomeOf(report))} (${Math.round(performance.now() - from)} ms)`)
        if (logs.has(report.name)) continue
        logs.add(report.name)
        void showLog(cli, client, report.name)
      }
      if (reports.length === 0) cli.out.line(`load  the gateway does not know ${name}`)
    }
    await wait(LOOK_MS, undefined, { signal: cli.signal }).catch(() => cli.signal.throwIfAborted())
  }
}

function outcomeOf (report: PluginReport): string {
  if (report.state !== 'active') return `${report.name} is ${report.state}: ${reasonOf(report)}`
  const waiting = waitingText(report)
  return waiting === null ? `${report.name} is active` : `${report.name}: ${waiting}`
}

/** Until the command ends; a gateway that goes away is asked again. */
async function showLog (cli: Cli, client: ApiClient, plugin: string): Promise<void> {
  while (!cli.signal.aborted) {
    try {
      for await (const { data } of client.events({ path: `/api/plugins/${encodeURIComponent(plugin)}/log` })) {
        const { level, message, fields } = logLineSchema.parse(JSON.parse(data))
        const more = Object.entries(fields).filter(([key]) => key !== 'plugin')
        cli.out.line(`${level}  ${asWritten(oneLine(`${message}${more.length === 0 ? '' : ` ${JSON.stringify(Object.fromEntries(more))}`}`))}`)
      }
    } catch {
      // it is being replaced or has gone; the next look tells
    }
    await wait(AGAIN_MS, undefined, { signal: cli.signal }).catch(() => {})
  }
}

/** What a package ships once writing has paused: the same at two looks. */
async function settledStamp (folder: string, signal: AbortSignal): Promise<string> {
  for (let before = await stampOf(folder); ;) {
    await wait(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
    const now = await stampOf(folder)
    if (now === before) return now
    before = now
  }
}

/** Changes with every file but sources, which are built first, and declarations and source maps, which nothing loads. */
async function stampOf (folder: string): Promise<string> {
  const stamps = await Promise.all((await shippedFiles(folder)).map(async path => {
    const { mtimeMs, size } = await stat(join(folder, path)).catch(() => ({ mtimeMs: 0, size: 0 }))
    return `${path} ${mtimeMs} ${size}`
  }))
  return stamps.join('\n')
}

async function contentOf (folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const path of await shippedFiles(folder)) hash.update(`${path}\0`).update(await readFile(join(folder, path)).catch(() => ''))
  return hash.digest('hex')
}

async function shippedFiles (folder: string): Promise<string[]> {
  const found: string[] = []
  const visit = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      const path = join(below, entry.name)
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules' && !entry.name.startsWith('.')) await visit(path)
        continue
      }
      if (!/\.[cm]?ts$|\.map$|\.tsbuildinfo$|^\./.test(entry.name)) found.push(path)
    }
  }
  await visit('')
  return found.sort()
}
